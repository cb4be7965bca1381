/** The command line as a program, against the real service. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readBlocks, readSection } from '../support/docs/markdown.js';
import { ADMIN, useService } from '../support/fixture.js';
import { startProgram, waitForOutput } from '../support/program.js';

const PROGRAM = 'dist/src/cli/main.js';
const service = useService();
const folder = mkdtempSync(join(tmpdir(), 'vigil-cli-'));
const env = (): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  XDG_CONFIG_HOME: folder,
  VIGIL_URL: service.url,
  VIGIL_PASSWORD: ADMIN.password,
});

interface Result {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end. */
function vigil(...args: string[]): Promise<Result> {
  return new Promise((done) => {
    execFile(process.execPath, [PROGRAM, ...args], { env: env() }, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

const jsonLines = ({ stdout }: Result) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

beforeAll(async () => {
  await service.admin('POST', 'objects', { id: 'truck-7', name: 'Truck 7' });
  const packets = [1, 2, 3].map((n) => ({ time: 1_700_000_000_000 + n * 1_000, speed: n }));
  await service.admin('POST', 'objects/truck-7/packets', packets);
  expect(await vigil('login', 'admin')).toMatchObject({ code: 0 });
});

afterAll(() => rmSync(folder, { recursive: true }));

test('stores the login where only its user can read it', async () => {
  expect(statSync(join(folder, 'vigil', 'login.json')).mode & 0o777).toBe(0o600);
  expect((await vigil('whoami')).stdout).toMatch(/^login +admin$/m);
});

test('lists and counts objects, packets and series', async () => {
  expect((await vigil('objects', '--only', 'id,name')).stdout).toBe('id       name\ntruck-7  Truck 7\n');
  expect(jsonLines(await vigil('objects', '--where', 'id=truck-7', '--json'))).toMatchObject([{ id: 'truck-7' }]);
  expect(jsonLines(await vigil('packets', 'truck-7', '--last', '2', '--json')).map(({ speed }) => speed)).toEqual([
    2, 3,
  ]);
  expect(jsonLines(await vigil('packets', 'truck-7', '--count', '--json'))).toEqual([{ count: 3 }]);
  const csv = (await vigil('packets', 'truck-7', '--format', 'csv')).stdout.trim().split(/\r?\n/);
  expect(csv).toHaveLength(4);
  const [series] = jsonLines(await vigil('series', 'truck-7', 'speed', '--every', '1 h', '--fn', 'avg', '--json'));
  expect(series.speed.avg).toEqual([2]);
  // A table has no rows without a value.
  expect(
    (await vigil('series', 'truck-7', 'speed', '--points', '1000', '--fn', 'max')).stdout.trim().split('\n'),
  ).toHaveLength(4);
});

describe('export', () => {
  const ODD = 'a b*é%.';
  const DAY_MS = 86_400_000;
  const START = Date.UTC(2026, 9, 1);
  const target = join(folder, 'history');

  beforeAll(async () => {
    const created = await service.admin('POST', 'objects', { id: ODD, name: 'Odd' });
    expect(created.body).toMatchObject({ id: ODD });
    await service.admin('POST', 'objects', { id: 'empty', name: 'Empty' });
    const odd = [0, DAY_MS - 1, DAY_MS, 40 * DAY_MS].map((ms, n) => ({ time: START + ms, n, lat: 1, lon: 2 }));
    const sent = await service.admin('POST', `objects/${encodeURIComponent(ODD)}/packets`, odd);
    expect(sent.body).toMatchObject({ count: 4 });
  });

  async function ask(sql: string): Promise<unknown[][]> {
    const connection = await (await DuckDBInstance.create()).connect();
    const rows = (await connection.runAndReadAll(sql)).getRowsJson();
    connection.closeSync();
    return rows;
  }
  const all = (path: string): string =>
    `read_parquet('${path}/*/*/*.parquet', hive_partitioning = true, union_by_name = true)`;

  test('writes a file for each object and day, which DuckDB reads as one table', async () => {
    expect(await vigil('export', '--parquet', target)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^4 files, 0\.0 MB\n$/),
    });
    const rows = await ask(
      `select object, day::text, count(*)::int, sum(n)::int, count(geometry)::int from ${all(target)} group by all order by all`,
    );
    expect(rows).toEqual([
      [ODD, '2026-10-01', 2, 1, 2],
      [ODD, '2026-10-02', 1, 2, 1],
      [ODD, '2026-11-10', 1, 3, 1],
      ['truck-7', '2023-11-14', 3, null, 0],
    ]);
  });

  test('replaces the files of its interval, and keeps the others', async () => {
    await service.admin('POST', 'objects/truck-7/packets', { time: 1_700_000_004_000, speed: 4 });
    expect(await vigil('export', ODD, '--parquet', target, '--from', '2026-10-02', '--json')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\{"files":2,"bytes":\d+\}\n$/),
    });
    expect(await ask(`select count(*)::int from ${all(target)}`)).toEqual([[7]]);
    expect((await vigil('export', 'truck-7', '--parquet', target)).code).toBe(0);
    expect(await ask(`select count(*)::int, max(speed) from ${all(target)}`)).toEqual([[8, 4]]);
  });

  test('has the packets of the interval, to its end, and the fields', async () => {
    const other = join(folder, 'some');
    const options = ['--from', '2026-10-01T12:00', '--to', '2026-10-02', '--only', 'n'];
    expect((await vigil('export', ODD, '--parquet', other, ...options)).code).toBe(0);
    expect(await ask(`select n, day::text from ${all(other)} order by n`)).toEqual([
      [1, '2026-10-01'],
      [2, '2026-10-02'],
    ]);
    expect(await ask(`select column_name from (describe select * from ${all(other)})`)).toEqual(
      ['_id', 'n', '_more', 'day', 'object'].map((name) => [name]),
    );
  });

  test.each([
    [['export'], 2, '--parquet is missing'],
    [['export', 'nobody', '--parquet', target], 1, 'There is no object "nobody"'],
    [['export', 'truck-7', '--parquet', target, '--from', 'soon'], 1, 'from: '],
    [['export', 'truck-7', '--parquet', '/dev/null/x'], 1, '/dev/null/x'],
    [['export', 'truck-7', '--parquet', '/proc/nowhere'], 1, 'The folder /proc/nowhere cannot be created'],
  ])('fails with a reason: %j', async (args, code, message) => {
    const result = await vigil(...args);
    expect([result.code, result.stdout]).toEqual([code, '']);
    expect(result.stderr).toContain(message);
  });

  test('says that there are no packets', async () => {
    expect(await vigil('export', 'empty', '--parquet', target)).toMatchObject({ code: 0, stderr: 'No packets\n' });
  });
});

test('shows the arguments of a command', async () => {
  const first = await vigil('help', 'series');
  const second = await vigil('series', '--help');
  expect([first.code, first.stdout]).toEqual([0, expect.stringMatching(/^vigil series <object> <parameter> …\n/)]);
  expect(second.stdout).toBe(first.stdout);
});

test('shows its version', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(await vigil('--version')).toMatchObject({ code: 0, stdout: `${version}\n` });
});

test('sends a command', async () => {
  const [{ _id }] = jsonLines(await vigil('send', 'truck-7', 'lock', 'doors=all', 'level=2', '--json'));
  const { body } = await service.admin('GET', `commands/${_id}`);
  expect(body).toMatchObject({ command: 'lock', params: { doors: 'all', level: 2 } });
});

test('says why a command was not found', async () => {
  const { code, stderr } = await vigil('send', 'truck-8', 'lock');
  expect([code, stderr]).toEqual([
    1,
    'There is no object "truck-8", or its model does not declare the command "lock"\n',
  ]);
});

test('listens until the number of events has come', async () => {
  const listener = startProgram(
    [PROGRAM, 'listen', 'truck-7', '--event', 'object-packet', '--count', '1', '--json'],
    env(),
  );
  await waitForOutput(listener, /(Connected)/);
  await service.admin('PATCH', 'objects/truck-7', { status: 'moved' });
  await service.admin('POST', 'objects/truck-7/packets', { speed: 9 });
  expect(await listener.ended).toBe(0);
  const [line = ''] = listener
    .output()
    .split('\n')
    .filter((text) => text.startsWith('{'));
  expect(JSON.parse(line)).toEqual({
    event: 'object-packet',
    data: expect.objectContaining({ id: 'truck-7', speed: 9 }),
    position: expect.any(String),
  });
});

test('applies files once: shows the difference, changes it, and then finds nothing to do', async () => {
  const [example] = readBlocks(readSection('docs/reference/command-line.md', 'Entities in files'));
  const file = join(folder, 'fleet.yaml');
  writeFileSync(file, example?.body ?? '');
  const asked = await vigil('apply', '-f', file);
  expect([asked.code, asked.stderr]).toEqual([1, expect.stringContaining('1 to create, 1 to change, 0 unchanged')]);
  expect((await vigil('apply', '-f', file, '--yes')).stderr).toContain('Applied: 1 created, 1 changed');
  const { body } = await service.admin('GET', 'objects/truck-7');
  expect((await service.admin('GET', `models/${body.model}`)).body.name).toBe('Truck');
  expect((await vigil('apply', '-f', file, '--yes')).stderr).toContain('0 to create, 0 to change, 2 unchanged');
  writeFileSync(file, (example?.body ?? '').replace('Truck 7', 'Truck Seven'));
  const shown = await vigil('apply', '-f', file, '--dry-run');
  expect([shown.code, shown.stdout]).toEqual([0, '~ objects/truck-7\n    name: "Truck 7" → "Truck Seven"\n']);
});

test('shows the secret of a webhook that a file creates, and which entity of a file was refused', async () => {
  const file = join(folder, 'hooks.json');
  const hook = { store: 'handlers', name: 'CRM', url: 'https://crm.example/vigil' };
  writeFileSync(file, JSON.stringify([hook, { store: 'handlers', name: 'ERP', url: 'nonsense' }]));
  const { code, stdout, stderr } = await vigil('apply', '-f', file, '--yes');
  expect([code, stdout + stderr]).toEqual([
    1,
    expect.stringMatching(/^handlers\/CRM: secret whsec_\S+ \(shown this once: keep it\)$/m),
  ]);
  expect(stderr).toContain(`${file}: handlers/ERP: 400 Bad Request: url: expected`);
  expect(stderr).toContain('1 of 2 applied');
  const fixed = { store: 'handlers', name: 'ERP', url: 'https://erp.example/vigil' };
  writeFileSync(file, JSON.stringify([hook, fixed]));
  expect((await vigil('apply', '-f', file, '--yes')).stderr).toContain('Applied: 1 created, 0 changed');
});

test('says that the login or the password is wrong', async () => {
  const { code, stderr } = await vigil('login', 'unknown');
  expect([code, stderr]).toEqual([1, 'The login or the password is wrong\n']);
});

test('prints types of added stores', async () => {
  await service.admin('POST', 'stores', { name: 'drivers', schema: { properties: { name: { type: 'string' } } } });
  expect((await vigil('types')).stdout).toContain('export type Driver = {\n  name?: string;\n};');
});

test.each([
  ['an unknown command', ['fly'], 2, 'There is no command "fly"'],
  ['an unknown option', ['objects', '--fast'], 2, "Unknown option '--fast'"],
  ['a missing argument', ['packets'], 2, 'An argument is missing: vigil packets <object>'],
  ['a missing file', ['apply', '-f', '/no/such/file'], 1, 'There is no file or folder /no/such/file'],
  ['an option that is not a number', ['listen', '--count', 'none'], 2, '--count: none is not a number above 0'],
  ['a receiver without a scheme', ['listen', '--forward', 'localhost:3000'], 2, '--forward: expected an address'],
  ['a missing recording', ['device', 'truck-7', '--file', '/no/such.csv'], 1, 'no such file or directory'],
  ['an unknown object of live events', ['listen', 'unknown'], 1, 'There is no object unknown'],
  ['an unknown object', ['packets', 'unknown'], 1, '404 Not Found'],
  ['another address without a login', ['objects', '--url', 'http://127.0.0.1:1'], 1, 'Not logged in'],
])('explains %s', async (_, args, code, reason) => {
  const result = await vigil(...args);
  expect([result.code, result.stderr]).toEqual([code, expect.stringContaining(reason)]);
  expect(result.stderr).not.toMatch(/^ +at /m);
});

test('runs the examples of its document', async () => {
  const [block] = readBlocks(readSection('docs/reference/command-line.md', 'Examples'));
  const script = (block?.body ?? '')
    .replace('http://127.0.0.1:8080', service.url)
    .replace(/^PASSWORD=.*$/m, `PASSWORD='${ADMIN.password}'`)
    .replace('> truck-7.csv', `> ${folder}/truck-7.csv`);
  const result = await new Promise<Result>((done) => {
    const options = { env: { ...process.env, XDG_CONFIG_HOME: folder } };
    execFile('bash', ['-c', `set -eo pipefail\n${script}`], options, (error, stdout, stderr) => {
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
  expect(result).toMatchObject({ code: 0, stderr: expect.not.stringContaining('Bad Request') });
  expect(result.stdout).toContain('truck-7  Truck 7');
  expect(readFileSync(join(folder, 'truck-7.csv'), 'utf8')).toContain('speed');
});
