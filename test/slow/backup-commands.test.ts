/** `npm run backup` and `npm run restore` with the embedded database, while the service runs and while it does not. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ADMIN } from '../support/fixture.js';
import { type Program, startProgram, waitForOutput } from '../support/program.js';

let base: string;
const running = new Set<Program>();

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'vigil-scripts-'));
});
afterAll(async () => {
  await Promise.all([...running].map(stop));
  await rm(base, { recursive: true, force: true });
});

function run(file: string, args: readonly string[], env: Record<string, string>): Program {
  const given = {
    ...process.env,
    MONGODB_URI: '',
    PORT: '0',
    MQTT_PORT: '',
    STOP_DELAY: '0',
    OVERLOAD_DELAY: '0',
    ...env,
  };
  return startProgram([`dist/${file}.js`, ...args], given);
}

async function runScript(name: string, args: readonly string[], dataFolder: string, env: Record<string, string> = {}) {
  const { ended, output } = run(`scripts/${name}`, args, { DATA_DIR: dataFolder, ...env });
  return { code: await ended, said: output() };
}

async function startVigil(dataFolder: string): Promise<{ url: string; program: Program }> {
  const env = { DATA_DIR: dataFolder, ADMIN_LOGIN: ADMIN.login, ADMIN_PASSWORD: ADMIN.password };
  const program = run('src/main', [], env);
  running.add(program);
  return { url: await waitForOutput(program, /running at (\S+)/), program };
}

async function stop(program: Program): Promise<void> {
  running.delete(program);
  await program.end('SIGTERM');
}

async function logIn(url: string): Promise<Record<string, string>> {
  const headers = { 'Content-Type': 'application/json' };
  const answer = await fetch(`${url}/api/v1/auth/token`, { method: 'POST', headers, body: JSON.stringify(ADMIN) });
  expect(answer.status).toBe(200);
  return { ...headers, Authorization: `Bearer ${((await answer.json()) as { token: string }).token}` };
}

test('restores a backup that was made while the service ran into another data folder', async () => {
  const first = join(base, 'first');
  const second = join(base, 'second');
  const live = join(base, 'backups', 'live');
  const still = join(base, 'backups', 'still');
  const { url, program } = await startVigil(first);
  const body = JSON.stringify({ id: 'truck-7', name: 'Truck 7' });
  const made = await fetch(`${url}/api/v1/objects`, { method: 'POST', headers: await logIn(url), body });
  expect(made.status).toBe(200);

  const backedUp = await runScript('backup', ['--to', live], first);
  expect(backedUp).toEqual({ code: 0, said: expect.stringContaining(`${live}: `) });
  expect(backedUp.said).toContain(join(first, 'secret'));
  const refused = await runScript('restore', ['--from', live, '--replace'], first);
  expect(refused).toEqual({ code: 1, said: expect.stringContaining('stop it first') });
  await stop(program);

  expect(await runScript('backup', ['--to', still], first)).toEqual({ code: 0, said: expect.stringContaining(still) });
  expect((await readdir(still)).sort()).toEqual((await readdir(live)).sort());
  expect(await runScript('backup', ['--to', still], first)).toEqual({
    code: 1,
    said: expect.stringContaining('is not empty'),
  });
  expect(await runScript('restore', ['--from', live], first)).toEqual({
    code: 1,
    said: expect.stringContaining('--replace'),
  });

  expect(await runScript('restore', ['--from', live], second)).toEqual({
    code: 0,
    said: expect.stringContaining('Restored'),
  });
  const restored = await startVigil(second);
  const objects = await fetch(`${restored.url}/api/v1/objects`, { headers: await logIn(restored.url) });
  expect(await objects.json()).toMatchObject([{ id: 'truck-7', name: 'Truck 7' }]);
  await stop(restored.program);
});

test.each([
  ['backup', [], '--to is missing'],
  ['backup', ['--to', 'x'], 'There is no data in'],
  ['restore', [], '--from is missing'],
  ['restore', ['--from', 'nothing'], 'is not a complete backup'],
  ['restore', ['--unknown'], "Unknown option '--unknown'"],
])('explains why it fails: %s %p', async (name, args, why) => {
  const { code, said } = await runScript(name, args as string[], join(base, 'none'));
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining(why) });
  expect(said).not.toContain('    at ');
});

test.each([
  ['backup', ['--to', 'x']],
  ['shard', []],
])('reads the address of the database from the file that the service reads: %s', async (name, args) => {
  const env = { MONGODB_URI_FILE: join(base, 'absent') };
  const { code, said } = await runScript(name, args as string[], join(base, 'none'), env);
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('MONGODB_URI_FILE cannot be read') });
});
