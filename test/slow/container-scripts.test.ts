/** The scripts that docker-compose.yml runs beside the service: scheduled backups, and the health check. */
import { once } from 'node:events';
import { cp, mkdtemp, readdir, rm, utimes } from 'node:fs/promises';
import { createServer } from 'node:net';
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
  MONGODB_URI: line.uri,
  BACKUP_DIR: folder,
  BACKUP_EVERY: '1h',
  BACKUP_KEEP: '2',
  ...env,
});
const startSchedule = (...args: string[]) => startProgram(['scripts/ops/backup.mjs', ...args], settings());
const check = () => startSchedule('--check').ended;

test('makes the first backup, waits for the next one, keeps the newest and removes incomplete ones', async () => {
  expect(await check()).toBe(1);
  const first = startSchedule();
  endings.push(() => first.child.kill('SIGKILL'));
  await until(async () => (await backups()).length === 1, 'the first backup');
  await until(() => check().then((code) => code === 0), 'the newest is young enough');
  first.child.kill('SIGTERM');
  expect(await first.ended).toBe(0);
  const [made = ''] = await backups();
  for (const name of ['2026-01-01T00-00-00', '2026-01-02T00-00-00', '2026-01-03T00-00-00.partial', 'mine'])
    await cp(join(folder, made), join(folder, name), { recursive: true });
  // Old enough that another one is due.
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
  await until(async () => (await backups()).length === 3, 'the oldest two are removed').catch((error: Error) => {
    throw new Error(`${error.message}: ${second.output()}`);
  });
  const names = await readdir(folder);
  expect(names).toEqual(expect.arrayContaining([made, 'mine']));
  expect(names.filter((name) => /^2026-01-|partial/.test(name))).toEqual([]);
});

test.each([
  ['BACKUP_EVERY', '24 hours'],
  ['BACKUP_KEEP', '0'],
])('refuses %s=%s with the expected values', async (name, value) => {
  const { ended, output } = startProgram(['scripts/ops/backup.mjs'], settings({ [name]: value }));
  expect(await ended).toBe(1);
  expect(output()).toMatch(new RegExp(`^${name}: expected`));
});

async function checkHealth(port = opsPort): Promise<[code: number | null, output: string]> {
  const { ended, output } = startProgram(['scripts/ops/health.mjs'], { OPS_PORT: port, TMPDIR: folder });
  return [await ended, output()];
}

test('reports a ready instance as healthy, and others with the reason', async () => {
  const answers = (code: number, text: RegExp) =>
    until(async () => {
      const [ended, said] = await checkHealth();
      return ended === code && text.test(said);
    }, `an answer like ${text}`);
  await answers(0, /ready/);
  await line.cut();
  await answers(1, /"reasons":\["/);
  await line.mend();
  await answers(0, /ready/);
});

test('counts the time for which an instance takes connections without an answer, but not the time before it listens', async () => {
  const port = await findFreePort();
  const isCounted = async () => (await readdir(folder)).includes('vigil-silent');
  expect([await checkHealth(String(port)), await isCounted()]).toEqual([[1, ''], false]);
  const hanging = createServer().listen(port, '127.0.0.1');
  endings.push(() => hanging.close());
  await once(hanging, 'listening');
  expect([await checkHealth(String(port)), await isCounted()]).toEqual([[1, ''], true]);
  hanging.close();
  expect([await checkHealth(String(port)), await isCounted()]).toEqual([[1, ''], false]);
});
