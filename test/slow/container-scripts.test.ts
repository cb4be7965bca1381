/** The scripts that docker-compose.yml runs beside the service: backups by themselves, and how an instance is. */
import { cp, mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { type Line, openLine } from '../support/cuttable-connection.js';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { findFreePort } from '../support/ports.js';
import { startProgram } from '../support/program.js';
import { until } from '../support/until.js';

let line: Line;
let service: TestService;
let opsPort: string;
let folder: string;
const endings: (() => unknown)[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vigil-backups-'));
  line = await openLine(testUri());
  opsPort = String(await findFreePort());
  service = await startTestService({ env: { OPS_PORT: opsPort } }, line.uri);
});
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});
afterAll(async () => {
  await line.mend();
  await service.stop();
  await line.cut();
  await rm(folder, { recursive: true });
});

const backups = async () => (await readdir(folder)).filter((name) => !name.endsWith('.partial')).sort();
const settings = (env: Record<string, string> = {}) => ({
  ...{ MONGODB_URI: line.uri, BACKUP_DIR: folder, BACKUP_EVERY: '1h', BACKUP_KEEP: '2', ...env },
});
const startSchedule = (...args: string[]) => startProgram(['scripts/ops/backup.mjs', ...args], settings());
const check = () => startSchedule('--check').ended;

test('makes a backup where there is none, then waits; keeps the newest, and what was cut off is gone', async () => {
  expect(await check()).toBe(1);
  const first = startSchedule();
  endings.push(() => first.child.kill('SIGKILL'));
  await until(async () => (await backups()).length === 1, 'the first backup', 30_000);
  await until(() => check().then((code) => code === 0), 'the newest is young enough', 30_000);
  first.child.kill('SIGTERM');
  expect(await first.ended).toBe(0);
  const [made = ''] = await backups();
  for (const name of ['2026-01-01T00-00-00', '2026-01-02T00-00-00', '2026-01-03T00-00-00.partial', 'mine'])
    await cp(join(folder, made), join(folder, name), { recursive: true });
  // So old that another one is due.
  const old = new Date(Date.now() - 2 * 3_600_000);
  for (const name of await backups()) await utimes(join(folder, name, 'manifest.json'), old, old);
  expect(await check()).toBe(1);
  // A backup is named after the second it begins in.
  await until(
    () => Date.now() >= Date.parse(`${made.replace(/T(\d\d)-(\d\d)-/, 'T$1:$2:')}Z`) + 1_000,
    'the next second',
  );
  const second = startSchedule();
  endings.push(() => second.child.kill('SIGKILL'));
  await until(async () => (await backups()).length === 3, 'the oldest two are gone', 30_000).catch((error: Error) => {
    throw new Error(`${error.message}: ${second.output()}`);
  });
  const names = await readdir(folder);
  expect(names).toEqual(expect.arrayContaining([made, 'mine']));
  expect(names.filter((name) => /^2026-01-|partial/.test(name))).toEqual([]);
}, 180_000);

test.each([
  ['BACKUP_EVERY', '24 hours'],
  ['BACKUP_KEEP', '0'],
])('refuses %s=%s and says what is expected', async (name, value) => {
  const { ended, output } = startProgram(['scripts/ops/backup.mjs'], settings({ [name]: value }));
  expect(await ended).toBe(1);
  expect(output()).toMatch(new RegExp(`^${name}: expected`));
});

test('says that an instance is well when it is ready, and otherwise why it is not', async () => {
  const ask = async (port = opsPort): Promise<[number | null, string]> => {
    const { ended, output } = startProgram(['scripts/ops/health.mjs'], { OPS_PORT: port, TMPDIR: folder });
    return [await ended, output()];
  };
  expect(await ask()).toEqual([0, expect.stringContaining('ready')]);
  await line.cut();
  await until(async () => (await ask())[0] === 1, 'it is not well', 30_000);
  expect(await ask()).toEqual([1, expect.stringMatching(/"reasons":\["/)]);
  await line.mend();
  await until(async () => (await ask())[0] === 0, 'it is well again', 30_000);
  expect(await ask(String(await findFreePort()))).toEqual([1, '']);
}, 120_000);
