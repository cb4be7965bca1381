/** docker-compose.yml and the Dockerfile: no process is root, no file is written, and no secret is stored. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { parseYaml } from '@redocly/openapi-core';
import { readCode, readSection, readTable } from '../../support/docs/markdown.js';

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
  readonly volumes?: (string | { source: string; bind?: { create_host_path?: boolean } })[];
  readonly build?: object;
  readonly pull_policy?: string;
  readonly tmpfs?: string[];
  readonly ulimits?: { nofile: number };
  readonly environment?: Record<string, string>;
  readonly profiles?: string[];
  readonly depends_on?: Record<string, { condition: string }>;
  readonly command?: string[];
  readonly scale?: string;
}

const COMPOSE = 'docker-compose.yml';
const REPLICAS = 'docker-compose.replicas.yml';
const text = readFileSync(COMPOSE, 'utf8');
const {
  services,
  networks,
  volumes,
  name: project,
} = parseYaml(text) as {
  name: string;
  services: Record<string, Container>;
  networks: Record<string, { internal?: boolean; enable_ipv6?: string; ipam?: { config: { subnet: string }[] } }>;
  volumes: Record<string, unknown>;
};
const all = Object.entries(services);
const ours = all.filter(([, { image }]) => image === 'vigil');
const dockerfile = readFileSync('Dockerfile', 'utf8');

describe('docker-compose.yml', () => {
  test.each(all)('gives %s limits and only the permissions it needs', (name, container) => {
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

  test('pins foreign images by digest', () => {
    const images = all.flatMap(([, { image }]) => (image === undefined || image === 'vigil' ? [] : [image]));
    expect(images.length).toBeGreaterThan(3);
    for (const image of images) expect(image).toMatch(/^([a-z]+\/)?[a-z]+:v?\d+\.\d+\.\d+@sha256:[0-9a-f]{64}$/);
  });

  test('runs a patched database with passwords that only the service can reach', () => {
    const { mongo } = services as { mongo: Container & { command: string[] } };
    const [, patch] = /^mongo:8\.0\.(\d+)@/.exec(mongo.image ?? '') ?? [];
    expect(Number(patch)).toBeGreaterThanOrEqual(21);
    expect(mongo.command).toEqual(expect.arrayContaining(['--keyFile', '--replSet']));
    expect(mongo.ports).toBeUndefined();
    expect(mongo.networks).toEqual(['database']);
    expect(networks).toMatchObject({ database: { internal: true }, inside: { internal: true } });
  });

  test('publishes only the balancer, without TLS only to this machine', () => {
    const published = all.flatMap(([name, { ports }]) => (ports ?? []).map((port) => `${name} ${port}`));
    expect(published.map((port) => port.replace(/\$\{\w+:-(\d+)\}/, '$1'))).toEqual([
      'proxy 127.0.0.1:8080:8080',
      'proxy 127.0.0.1:1883:1883',
      'proxy 8443:8443',
      'grafana 127.0.0.1:3000:3000',
      // The protocols of trackers have no TLS.
      `traccar 5027:\${TRACCAR_PORTS:-5027}`,
      `traccar 5027:\${TRACCAR_PORTS:-5027}/udp`,
    ]);
    expect(services.app).not.toHaveProperty('container_name');
  });

  test('contains no password', () => {
    expect(readFileSync(COMPOSE, 'utf8')).not.toMatch(/(password|secret|key)[a-z_]*: +["']?(?!\/secrets)[A-Za-z0-9]/i);
  });

  test('has one name, wherever the folder is', () => expect(project).toBe('vigil'));

  test('builds our image locally and leaves no anonymous volume', () => {
    expect(ours.map(([name]) => name)).toEqual(['secrets', 'database', 'app', 'backup']);
    for (const [, container] of ours) {
      expect(container.pull_policy).toBe('never');
      expect(container.tmpfs).toContain('/data');
    }
    expect(ours.filter(([, { build }]) => build !== undefined).map(([name]) => name)).toEqual(['secrets']);
  });

  test('permits enough open files for one per client', () => {
    for (const name of ['mongo', 'app', 'proxy']) expect(services[name]?.ulimits).toEqual({ nofile: 64_000 });
  });

  test('refuses a missing certificate instead of creating a folder', () => {
    const given = (services.secrets?.volumes ?? []).filter((volume) => typeof volume !== 'string');
    expect(given).toMatchObject([
      { type: 'bind', source: expect.stringContaining('TLS_CERT'), read_only: true, bind: { create_host_path: false } },
      { type: 'bind', source: expect.stringContaining('TLS_KEY'), read_only: true, bind: { create_host_path: false } },
    ]);
  });

  test('takes the number of instances from a setting', () => {
    expect(services.app?.scale).toBe(`\${APP_INSTANCES:-1}`);
  });

  test('checks health often during the start and rarely later', () => {
    for (const name of ['mongo', 'app', 'proxy'])
      expect(services[name]?.healthcheck).toMatchObject({
        start_interval: expect.any(String),
        test: expect.anything(),
      });
    expect(services.mongo?.healthcheck).toMatchObject({ interval: '30s' });
    expect(services.app?.healthcheck).toMatchObject({ test: ['CMD', 'node', 'scripts/ops/health.mjs'] });
    expect(services.proxy?.depends_on).toEqual({ app: { condition: 'service_healthy' } });
    expect(services.proxy?.environment).toMatchObject({ READY_PORT: '9464' });
  });

  test('keeps the addresses of clients over IPv6', () => {
    expect(networks.outside?.enable_ipv6).toBe(`\${ENABLE_IPV6:-true}`);
    expect(networks.outside?.ipam?.config[0]?.subnet).toMatch(/:-fd[0-9a-f:]+::\/64}$/);
  });

  test('puts optional services into profiles', () => {
    const profiled = all.filter(([, { profiles }]) => profiles !== undefined);
    expect(profiled.map(([name, { profiles }]) => [name, ...(profiles as string[])])).toEqual([
      ['backup', 'backup'],
      ['prometheus', 'observe'],
      ['grafana', 'observe'],
      ['traccar', 'traccar'],
    ]);
  });

  test('docs/operations/deploy.md names every setting, and no other', () => {
    const named = (of: string) => new Set([...of.matchAll(/\$\{([A-Z][A-Z0-9_]*)/g)].map(([, name]) => name));
    const table = readSection('docs/operations/deploy.md', 'Settings of the compose file');
    const shown = readTable(table).flatMap(([cell]) => readCode(cell));
    // Compose's own.
    const own = ['COMPOSE_FILE', 'COMPOSE_PROFILES', 'COMPOSE_PROJECT_NAME'];
    expect(shown.sort()).toEqual([...named(text), ...own].sort());
  });

  const compose = findCompose();
  if (compose === null) process.stderr.write('Compose 2 is not installed: the compose files are not checked by it\n');
  (compose === null ? test.skip : test)('Compose takes it, alone and with the overlay', () => {
    const [program, ...words] = compose as string[];
    for (const files of [[COMPOSE], [COMPOSE, REPLICAS]]) {
      const args = [...words, ...files.flatMap((file) => ['-f', file]), '--profile', '*', 'config'];
      const resolved = parseYaml(execFileSync(program as string, args, { encoding: 'utf8' })) as typeof services;
      const names = Object.keys((resolved as unknown as { services: object }).services);
      expect(names).toEqual(expect.arrayContaining(Object.keys(services)));
    }
  });
});

/** The command of a Compose that is new enough; null where there is none. */
function findCompose(): string[] | null {
  for (const command of [['docker', 'compose'], ['docker-compose']]) {
    try {
      const [program, ...args] = command as [string, ...string[]];
      const version = execFileSync(program, [...args, 'version', '--short'], { stdio: ['ignore', 'pipe', 'ignore'] });
      if (!/^v?1\./.test(String(version))) return command;
    } catch {
      // Not here.
    }
  }
  return null;
}

describe('docker-compose.replicas.yml', () => {
  const overlay = parseYaml(readFileSync(REPLICAS, 'utf8')) as {
    services: Record<string, Container & { extends?: { service: string } }>;
    volumes: Record<string, unknown>;
  };
  const MEMBERS = 'mongo:27017,mongo2:27017,mongo3:27017';

  test('adds two members like the first, with separate data and without users', () => {
    const added = ['mongo2', 'mongo3'].map((name) => overlay.services[name]);
    for (const member of added) {
      expect(member?.extends).toEqual({ file: COMPOSE, service: 'mongo' });
      expect(member?.environment).toEqual({ MONGO_INITDB_ROOT_USERNAME: '', MONGO_INITDB_ROOT_PASSWORD_FILE: '' });
    }
    const stored = added.flatMap((member) => member?.volumes ?? []).map((volume) => String(volume).split(':')[0]);
    expect(new Set(stored).size).toBe(4);
    expect(Object.keys(overlay.volumes).sort()).toEqual([...stored].sort());
    expect(stored.filter((volume) => (volume as string) in volumes)).toEqual([]);
  });

  test('passes all three members to the scripts for the set and the URI', () => {
    for (const name of ['secrets', 'database'])
      expect(overlay.services[name]?.environment).toEqual({ MONGODB_MEMBERS: MEMBERS });
    expect(Object.keys(overlay.services.database?.depends_on ?? {})).toEqual(['mongo2', 'mongo3']);
  });
});

describe('profile observe', () => {
  const read = (file: string) => parseYaml(readFileSync(`scripts/ops/${file}`, 'utf8')) as never;

  test('scrapes every instance with the rules of alerts.yml', () => {
    const { scrape_configs: jobs, rule_files: rules } = read('prometheus.yml') as {
      scrape_configs: { job_name: string; dns_sd_configs: object[] }[];
      rule_files: string[];
    };
    expect(jobs).toEqual([
      { job_name: 'vigil', dns_sd_configs: [expect.objectContaining({ names: ['app'], type: 'A', port: 9464 })] },
    ]);
    for (const rule of rules) expect(existsSync(`scripts/ops/${rule}`)).toBe(true);
    expect(services.prometheus?.command).toContain('--config.file=/ops/prometheus.yml');
    expect(services.prometheus?.networks).toEqual(['inside']);
  });

  test('gives Grafana the data source, the dashboard and a secret password', () => {
    const { datasources } = read('grafana/datasources/prometheus.yml') as { datasources: object[] };
    expect(datasources).toMatchObject([{ type: 'prometheus', url: 'http://prometheus:9090', isDefault: true }]);
    const { providers } = read('grafana/dashboards/vigil.yml') as { providers: object[] };
    expect(providers).toMatchObject([{ type: 'file', options: { path: '/ops' } }]);
    expect(existsSync('scripts/ops/dashboard.json')).toBe(true);
    expect(services.grafana?.volumes).toContain('./scripts/ops:/ops:ro');
    expect(services.grafana?.environment).toMatchObject({ GF_PATHS_PROVISIONING: '/ops/grafana' });
    expect(services.grafana?.environment?.GF_SECURITY_ADMIN_PASSWORD__FILE).toBe('/secrets/admin-password');
    expect(services.secrets?.volumes).toContain('grafana-secrets:/secrets/grafana');
    expect(services.grafana?.volumes).toContain('grafana-secrets:/secrets:ro');
  });

  test('lets Grafana reach the API through the proxy, and start without its plugin', () => {
    const { datasources } = read('grafana/datasources/vigil.yml') as { datasources: { url: string }[] };
    expect(datasources.map(({ url }) => url)).toEqual(['http://proxy:8080']);
    expect(services.grafana?.networks?.filter((name) => services.proxy?.networks?.includes(name))).not.toEqual([]);
    expect(services.grafana).toMatchObject({ entrypoint: ['/bin/sh', '/ops/grafana.sh'], command: ['/run.sh'] });
    // A failed download at the start would end Grafana.
    expect(Object.keys(services.grafana?.environment ?? {})).not.toContain('GF_PLUGINS_PREINSTALL_SYNC');
    expect(services.grafana?.environment).toMatchObject({ GF_PLUGINS_PREINSTALL_DISABLED: 'true' });
  });
});

test('profile traccar forwards positions and events to a source, through the proxy, and reaches nothing else', () => {
  const { environment = {}, networks: reached, volumes: written } = services.traccar as Container;
  for (const name of ['FORWARD', 'EVENT_FORWARD']) {
    expect(environment[`${name}_TYPE`]).toBe('json');
    expect(environment[`${name}_URL`]).toBe(`http://proxy:8080\${BASE_PATH:-}/api/v1/in/\${TRACCAR_SOURCE:-traccar}`);
    expect(environment[`${name}_HEADER`]).toBe(`Authorization: Bearer \${TRACCAR_KEY:-}`);
  }
  expect(environment.CONFIG_USE_ENVIRONMENT_VARIABLES).toBe('true');
  // As Traccar names the variables of its keys: those of the guide.
  const keys = [...readFileSync('docs/how-to/traccar.md', 'utf8').matchAll(/<entry key='([^']+)'>/g)].map(
    ([, key]) => key,
  );
  const toVariable = (key = '') =>
    key
      .replaceAll('.', '_')
      .replaceAll(/\p{Lu}/gu, '_$&')
      .toUpperCase();
  // The image has the others of the database.
  const ofImage = ['DATABASE_DRIVER', 'DATABASE_USER', 'DATABASE_PASSWORD'];
  const given = Object.keys(environment).filter(
    (name) => !['JAVA_TOOL_OPTIONS', 'CONFIG_USE_ENVIRONMENT_VARIABLES', 'LOGGER_CONSOLE'].includes(name),
  );
  expect(given.sort()).toEqual([...new Set(keys.map(toVariable))].filter((name) => !ofImage.includes(name)).sort());
  expect(reached).toEqual(['outside']);
  expect(services.proxy?.networks).toContain('outside');
  const others = all.filter(
    ([name, { networks: of }]) => !['traccar', 'proxy', 'grafana'].includes(name) && of?.includes('outside'),
  );
  expect(others).toEqual([]);
  expect(written).toEqual(['traccar:/tmp']);
  expect(environment.DATABASE_URL).toBe('jdbc:h2:/tmp/traccar');
  // The same image as in the guide, which runs it on another machine.
  expect(readFileSync('docs/how-to/traccar.md', 'utf8')).toContain(`image: ${services.traccar?.image}`);
});

describe('Dockerfile', () => {
  const lines = dockerfile.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const last = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM')));

  test('builds every stage on one pinned image of a maintained Node.js', () => {
    expect(lines[0]).toMatch(/^ARG NODE_IMAGE=node:24\.\d+\.\d+-bookworm-slim@sha256:[0-9a-f]{64}$/);
    const stages = lines.filter((line) => line.startsWith('FROM'));
    for (const line of stages) expect(line).toMatch(/^FROM (\$\{NODE_IMAGE\}|all-packages)( AS [a-z-]+)?$/);
    expect(stages.at(-1)).toMatch(/NODE_IMAGE/);
  });

  test('installs the packages of the lock file without their scripts', () => {
    const installs = lines.filter((line) => /npm /.test(line));
    expect(installs).toHaveLength(2);
    expect(installs[0]).toMatch(/^RUN npm ci .*--ignore-scripts/);
    expect(installs[1]).toMatch(/^RUN npm prune --omit=dev --ignore-scripts/);
    expect(last.join('\n')).toContain('COPY --from=packages /app/node_modules node_modules');
  });

  test('leaves package manager and development packages out of the image', () => {
    expect(last[1]).toMatch(/^RUN rm -rf \/usr\/local\/lib\/node_modules .* npm$/);
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
    const tools = ['pacote', 'mongodb-memory-server-core', 'csv-parse', 'socket.io-client', 'yaml'];
    expect(tools.filter((name) => name in dependencies)).toEqual([]);
  });

  test('passes a certificate authority only to the stage that fetches', () => {
    expect(lines.filter((line) => line === 'ARG EXTRA_CA=""')).toHaveLength(1);
    expect(last.join('\n')).not.toContain('CA');
  });

  test('runs as an unprivileged user with a health check and a stop signal', () => {
    const of = (word: string) => last.filter((line) => line.startsWith(`${word} `));
    expect(of('USER')).toEqual(['USER node']);
    expect(last.indexOf('USER node')).toBeLessThan(last.findIndex((line) => line.startsWith('CMD')));
    expect(of('STOPSIGNAL')).toEqual(['STOPSIGNAL SIGTERM']);
    expect(of('HEALTHCHECK')).toHaveLength(1);
    expect(dockerfile).toMatch(/OPS_PORT}\/health/);
    const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(JSON.parse(of('CMD')[0]?.slice('CMD '.length) ?? '')).toEqual(scripts.start.split(' '));
  });

  test('copies only existing files that .dockerignore admits', () => {
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
