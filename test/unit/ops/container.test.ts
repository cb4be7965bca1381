/** What docker-compose.yml and the Dockerfile promise: nobody is root, nothing is written, nothing secret is in them. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parseYaml } from '@redocly/openapi-core';

interface Container {
  readonly image?: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: string[];
  readonly cap_add?: string[];
  readonly security_opt?: string[];
  readonly ports?: string[];
  readonly networks?: string[];
  readonly pids_limit?: number;
  readonly mem_limit?: string;
  readonly healthcheck?: object;
  readonly restart?: string;
  readonly volumes?: string[];
}

const COMPOSE = 'docker-compose.yml';
const { services, networks } = parseYaml(readFileSync(COMPOSE, 'utf8')) as {
  services: Record<string, Container>;
  networks: Record<string, { internal?: boolean }>;
};
const all = Object.entries(services);
const dockerfile = readFileSync('Dockerfile', 'utf8');

describe('docker-compose.yml', () => {
  test.each(all)('%s has no rights it does not need, and bounds', (name, container) => {
    expect(container).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      pids_limit: expect.any(Number),
      mem_limit: expect.any(String),
    });
    // Who makes the secrets gives them to others, once, without a network.
    if (name === 'secrets')
      expect(container).toMatchObject({ network_mode: 'none', cap_add: ['CHOWN', 'DAC_OVERRIDE'] });
    else expect(container.cap_add).toBeUndefined();
    // The image of the service names its own user.
    if (name !== 'secrets' && container.image !== 'vigil') expect(container.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  test('foreign images are pinned to their bytes', () => {
    const images = all.flatMap(([, { image }]) => (image === undefined || image === 'vigil' ? [] : [image]));
    expect(images.length).toBeGreaterThan(0);
    for (const image of images) expect(image).toMatch(/^[a-z]+:\d+\.\d+\.\d+@sha256:[0-9a-f]{64}$/);
  });

  test('the database is patched against what is known, asks for passwords, and is reached by the service alone', () => {
    const { mongo } = services as { mongo: Container & { command: string[] } };
    const [, patch] = /^mongo:8\.0\.(\d+)@/.exec(mongo.image ?? '') ?? [];
    expect(Number(patch)).toBeGreaterThanOrEqual(21);
    expect(mongo.command).toEqual(expect.arrayContaining(['--keyFile', '--replSet']));
    expect(mongo.ports).toBeUndefined();
    expect(mongo.networks).toEqual(['database']);
    expect(networks).toMatchObject({ database: { internal: true }, inside: { internal: true } });
  });

  test('only the balancer is reached from outside: HTTP from this machine, TLS from everywhere', () => {
    const published = all.flatMap(([name, { ports }]) => (ports ?? []).map((port) => `${name} ${port}`));
    expect(published.map((port) => port.replace(/\$\{\w+:-(\d+)\}/, '$1'))).toEqual([
      'proxy 127.0.0.1:8080:8080',
      'proxy 127.0.0.1:1883:1883',
      'proxy 8443:8443',
    ]);
    expect(services.app).not.toHaveProperty('container_name');
  });

  test('no password is in it', () => {
    expect(readFileSync(COMPOSE, 'utf8')).not.toMatch(/(password|secret|key)[a-z_]*: +["']?(?!\/secrets)[A-Za-z0-9]/i);
  });

  const hasCompose = (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, 'docker-compose')));
  if (!hasCompose) process.stderr.write('docker-compose is not installed: the compose file is not checked by it\n');
  (hasCompose ? test : test.skip)('docker-compose takes it', () => {
    const written = execFileSync('docker-compose', ['-f', COMPOSE, 'config'], { encoding: 'utf8' });
    const { services: resolved } = parseYaml(written) as { services: Record<string, Container> };
    expect(Object.keys(resolved).sort()).toEqual(Object.keys(services).sort());
    expect(Object.keys(resolved.proxy ?? {})).toContain('ports');
  });
});

describe('Dockerfile', () => {
  const lines = dockerfile.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const last = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM')));

  test('every stage stands on one image, pinned to its bytes, of a Node that is maintained', () => {
    expect(lines[0]).toMatch(/^ARG NODE_IMAGE=node:24\.\d+\.\d+-bookworm-slim@sha256:[0-9a-f]{64}$/);
    for (const line of lines) if (line.startsWith('FROM')) expect(line).toMatch(/^FROM \$\{NODE_IMAGE\}( AS [a-z]+)?$/);
  });

  test('packages are those of the lock file, and none runs a script of its own', () => {
    const installs = lines.filter((line) => /npm /.test(line));
    expect(installs).toHaveLength(2);
    for (const line of installs) expect(line).toMatch(/^RUN npm ci .*--ignore-scripts/);
    expect(installs[0]).toContain('--omit=dev');
    expect(last.join('\n')).toContain('COPY --from=packages /app/node_modules node_modules');
  });

  test('it runs as nobody special, is asked for its health, and is told to end as a process is', () => {
    const of = (word: string) => last.filter((line) => line.startsWith(`${word} `));
    expect(of('USER')).toEqual(['USER node']);
    expect(last.indexOf('USER node')).toBeLessThan(last.findIndex((line) => line.startsWith('CMD')));
    expect(of('STOPSIGNAL')).toEqual(['STOPSIGNAL SIGTERM']);
    expect(of('HEALTHCHECK')).toHaveLength(1);
    expect(dockerfile).toMatch(/OPS_PORT}\/health/);
    expect(of('CMD')[0]).toMatch(/^CMD \["node"/);
  });

  test('what is copied into it is there, and .dockerignore lets nothing else in', () => {
    const copied = lines.flatMap((line) =>
      (/^COPY (?!--from)(.*) \S+$/.exec(line)?.[1] ?? '').split(' ').filter(Boolean),
    );
    for (const path of copied) expect(existsSync(path)).toBe(true);
    const let_in = readFileSync('.dockerignore', 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(let_in[0]).toBe('*');
    const first = new Set(copied.map((path) => path.split('/')[0]));
    expect(
      let_in
        .slice(1)
        .map((line) => line.replace('!', ''))
        .sort(),
    ).toEqual([...first].sort());
  });
});

describe('secrets', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'vigil-secrets-'));
    for (const name of ['app', 'mongo', 'proxy', 'given']) mkdirSync(join(folder, name));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const given = () => join(folder, 'given');
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  async function make(): Promise<Record<string, number>> {
    const path = '../../../scripts/ops/secrets.mjs';
    const { makeSecrets } = (await import(path)) as { makeSecrets: (...args: unknown[]) => void };
    const owners: Record<string, number> = {};
    makeSecrets(folder, given(), (file: string, owner: number) => {
      owners[file.slice(folder.length + 1).replace(/\.new$/, '')] = owner;
    });
    return owners;
  }

  test('each is made once, for its reader alone', async () => {
    const names = ['mongo/keyfile', 'mongo/root-password', 'mongo/app-password'];
    const ours = ['app/mongodb-uri', 'app/secret', 'app/admin-password'];
    expect(await make()).toEqual({
      ...Object.fromEntries(names.map((name) => [name, 999])),
      ...Object.fromEntries(ours.map((name) => [name, 1000])),
    });
    const before = [...names, ...ours].map(read);
    for (const name of [...names, ...ours]) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o400);
    expect(new Set(before).size).toBe(before.length);
    expect(read('app/mongodb-uri')).toContain(`vigil:${read('mongo/app-password')}@mongo:27017/vigil`);
    expect(await make()).toEqual({});
    expect([...names, ...ours].map(read)).toEqual(before);
  });

  test('a certificate is handed over, half of one refused, and taken back when it is no longer given', async () => {
    writeFileSync(join(given(), 'cert.pem'), 'a certificate');
    await expect(make()).rejects.toThrow('TLS_CERT and TLS_KEY: the key is missing');
    writeFileSync(join(given(), 'key.pem'), 'a key');
    expect(await make()).toEqual({ 'proxy/cert.pem': 101, 'proxy/key.pem': 101 });
    expect(read('proxy/key.pem')).toBe('a key');
    rmSync(join(given(), 'cert.pem'));
    rmSync(join(given(), 'key.pem'));
    await make();
    expect(existsSync(join(folder, 'proxy', 'key.pem'))).toBe(false);
  });
});
