/** The dashboards of objects: every request that Grafana would send is answered, with the fields that the panels show. */
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parseYaml } from '@redocly/openapi-core';
import { VIEWER_ROLE_ID } from '../../src/core/builtin.js';
import { type Call, useService } from '../support/fixture.js';

interface Query {
  readonly url: string;
  readonly root_selector: string;
  readonly columns: readonly { readonly selector: string; readonly type: string }[];
  readonly format: string;
  readonly parser: string;
}

interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly { id: number; title: string; type: string; targets?: Query[] }[];
  readonly templating: { list: { name: string; query: string | { infinityQuery: Query } }[] };
}

const OPS = 'scripts/ops';
const HANDBOOK = 'docs/operations/observability.md';
const PASSWORD = 'a password of eight';
const COMMAND_TIMEOUT_MS = 60_000;
/** Grafana evaluates selectors with gojq; jq understands the same language. */
const HAS_JQ = spawnSync('jq', ['--version']).error === undefined;
const service = useService();
const files = readdirSync(OPS).filter((name) => name.endsWith('.json'));
const dashboards = files.map((name) => JSON.parse(readFileSync(join(OPS, name), 'utf8')) as Dashboard);
const ofObjects = dashboards.filter(({ uid }) => uid !== 'vigil');
const folder = mkdtempSync(join(tmpdir(), 'vigil-grafana-'));
let viewer: Call;
let token = '';

/** The values of Grafana's variables. */
const values = () => ({
  __timeFrom: String(Date.now() - 6 * 3_600_000),
  __timeTo: String(Date.now()),
  'object:percentencode': encodeURIComponent('truck 7'),
  'objects:csv': 'truck 7,truck-8',
  'parameter:percentencode': 'engine.rpm',
  parameter: 'engine.rpm',
});

function fill(text: string): string {
  return text.replace(/\$\{([\w:]+)\}/g, (_, name: string) => {
    const value = (values() as Record<string, string>)[name];
    if (value === undefined) throw new Error(`no value for ${name}`);
    return value;
  });
}

beforeAll(async () => {
  const post = async (path: string, body: object) => {
    const { status, headers } = await service.admin('POST', path, body);
    expect([path, status]).toEqual([path, 200]);
    return headers.location;
  };
  await post('users', { login: 'grafana', password: PASSWORD, role: VIEWER_ROLE_ID });
  for (const id of ['truck 7', 'truck-8']) {
    await post('objects', { id, name: id });
    const path = `objects/${encodeURIComponent(id)}`;
    for (let nth = 0; nth < 3; nth++)
      await post(`${path}/packets`, { engine: { rpm: 900 + nth }, lat: 52 + nth / 10, lon: 13, speed: nth });
    await post(`${path}/packets`, { online: false });
    const command = (await post(`${path}/commands/open`, {}))?.split('/').at(-1);
    await post(`${path}/commands/${command}/result`, { status: 'failed' });
  }
  await service.settled();
  token = await issueToken(PASSWORD);
  viewer = service.as(token);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the command of the handbook, without the container that writes the file; returns the stored token. */
async function issueToken(password: string): Promise<string> {
  const [, block = ''] = /```text\n {3}read -rs PASSWORD\n([^`]*)```/.exec(readFileSync(HANDBOOK, 'utf8')) ?? [];
  const command = block
    .replace('http://127.0.0.1:8080', service.url)
    .replace('docker compose run --rm --no-deps -T secrets sh', 'sh')
    .replace('/secrets/grafana', folder)
    .replace('docker compose restart grafana\n', '');
  expect(command).not.toMatch(/docker|:8080|secrets/);
  const env = { ...process.env, PASSWORD: password };
  await promisify(execFile)('sh', ['-c', command], { env, timeout: COMMAND_TIMEOUT_MS }).catch(() => undefined);
  return readFileSync(join(folder, 'vigil-token'), 'utf8');
}

describe('the token of the handbook', () => {
  test('permits reading objects only, and lasts a year', async () => {
    const { iat, exp } = JSON.parse(Buffer.from(token.split('.')[1] as string, 'base64url').toString());
    expect(exp - iat).toBe(365 * 86_400);
    for (const path of ['users', 'audit', 'account']) expect((await viewer('GET', path)).status).toBe(403);
    expect((await viewer('POST', 'objects/truck-8/commands/open', {})).status).toBe(403);
    expect((await viewer('GET', 'objects')).status).toBe(200);
  });

  test('stays when the password is wrong', async () => {
    expect(await issueToken('another password')).toBe(token);
  });
});

test('has dashboards with distinct uids, and panels with distinct ids', () => {
  expect(dashboards.map(({ uid }) => uid).sort()).toEqual(['vigil', 'vigil-fleet', 'vigil-object']);
  for (const { panels } of dashboards) expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
});

const queries = ofObjects.flatMap(({ title, panels, templating }) => [
  ...panels.flatMap(({ title: of, targets = [] }) => targets.map((query) => [`${title}, ${of}`, query] as const)),
  ...templating.list.flatMap(({ name, query }) =>
    typeof query === 'object' ? [[`${title}, variable ${name}`, query.infinityQuery] as const] : [],
  ),
]);

(HAS_JQ ? test : test.skip).each(queries)('answers the query of %s with the fields that it shows', async (_, query) => {
  expect(query.parser).toBe('jq-backend');
  const { status, text } = await viewer('GET', fill(query.url));
  expect([status, text.slice(0, 200)]).toEqual([200, expect.anything()]);
  const shown = execFileSync('jq', ['-c', fill(query.root_selector)], { input: text, encoding: 'utf8' });
  const rows: Record<string, unknown>[] = shown
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(rows.length).toBeGreaterThan(0);
  for (const { selector, type } of query.columns) {
    const found = rows.map((row) => row[selector]);
    expect(found).not.toContain(undefined);
    const kinds = { string: 'string', boolean: 'boolean', number: 'number', timestamp_epoch: 'number' } as const;
    expect(found.filter((value) => value !== null).map((value) => typeof value)).toContain(kinds[type as 'string']);
  }
  // Grafana turns long series into one for each object only if they are sorted by time.
  const times = rows.map(({ time }) => Number(time));
  if (query.format === 'timeseries') expect(times).toEqual([...times].sort((a, b) => a - b));
});

test('has a data source that reads the token from a file, and the plugin that the dashboards name', () => {
  const { datasources } = parseYaml(readFileSync(join(OPS, 'grafana/datasources/vigil.yml'), 'utf8')) as {
    datasources: { type: string; uid: string; secureJsonData: object; jsonData: { allowedHosts: string[] } }[];
  };
  expect(datasources).toMatchObject([
    { uid: 'vigil-api', secureJsonData: { bearerToken: '$__file{/secrets/vigil-token}' }, access: 'proxy' },
  ]);
  const [{ type = '', jsonData } = {}] = datasources;
  expect(jsonData?.allowedHosts).toEqual(['http://proxy:8080']);
  expect(readFileSync(join(OPS, 'grafana.sh'), 'utf8')).toContain(`plugin=${type}\n`);
  const version = /^version=(.*)$/m.exec(readFileSync(join(OPS, 'grafana.sh'), 'utf8'))?.[1];
  expect(readFileSync(HANDBOOK, 'utf8')).toContain(`version ${version}`);
  for (const { templating } of ofObjects) expect(templating.list[0]).toMatchObject({ name: 'source', query: type });
});

describe('the start of Grafana', () => {
  /** Runs the script with a program `grafana` that exits with this code. */
  function start(code: number) {
    const programs = join(folder, 'bin');
    mkdirSync(programs, { recursive: true });
    writeFileSync(join(programs, 'grafana'), `#!/bin/sh\necho "$@" >> "${folder}/calls"\nexit ${code}\n`, {
      mode: 0o755,
    });
    const env = { PATH: `${programs}${delimiter}${process.env.PATH}`, GF_PATHS_PLUGINS: join(folder, 'plugins') };
    const stdio = ['ignore', 'pipe', 'ignore'] as const;
    const shown = execFileSync('sh', [join(OPS, 'grafana.sh'), 'echo', 'started'], {
      env,
      encoding: 'utf8',
      stdio: [...stdio],
    });
    return { shown, calls: readFileSync(join(folder, 'calls'), 'utf8').split('\n').slice(0, -1) };
  }

  test('installs the plugin once, and happens without it too', () => {
    const plugin = join(folder, 'plugins', 'yesoreyeram-infinity-datasource');
    const call = `cli --pluginsDir ${join(folder, 'plugins')} plugins install yesoreyeram-infinity-datasource 3.10.1`;
    expect(start(1)).toEqual({ shown: 'started\n', calls: [call] });
    expect(start(0)).toEqual({ shown: 'started\n', calls: [call, call] });
    mkdirSync(plugin, { recursive: true });
    writeFileSync(join(plugin, 'plugin.json'), '{"info":{"version": "3.10.1"}}');
    expect(start(0).calls).toEqual([call, call]);
  });
});
