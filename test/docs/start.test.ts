/** A start that cannot be says why, in the words of README "Troubleshooting", before it makes anything. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readCode, readSection, readTable } from './markdown.js';

let base: string;
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'vigil-start-'));
});
afterAll(() => rm(base, { recursive: true, force: true }));

/** Starts the service as a process of its own, for a start that fails. */
async function start(env: Record<string, string>): Promise<{ code: number; said: string }> {
  const given = { PATH: '', HOME: base, PORT: '0', DATA_DIR: join(base, 'data'), ...env };
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/main.ts'], { env: given });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  }
  const [code] = await once(child, 'close');
  return { code, said: said.trim() };
}

/** Whether a row of the table begins as the message does; `…` stands for what differs. */
function isListed(message: string): boolean {
  const rows = readTable(readSection('README.md', 'Troubleshooting'));
  const shown = rows.flatMap(([cell]) => readCode(cell)).filter((text) => text.includes('…'));
  return shown.some((text) => {
    const [first = '', next = ''] = text.split('…');
    return message.startsWith(first) && message.includes(next);
  });
}

test('on a port that is taken: nothing was made, so no password is lost', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, said } = await start({ PORT: String(port) });
  other.close();
  expect({ code, said }).toEqual({ code: 1, said: expect.stringMatching(`^Port ${port} of 127.0.0.1 is taken`) });
  expect(isListed(said)).toBe(true);
  await expect(access(join(base, 'data'))).rejects.toThrow('ENOENT');
});

test('in a data folder that cannot be one', async () => {
  await writeFile(join(base, 'file'), '');
  const { code, said } = await start({ DATA_DIR: join(base, 'file') });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('cannot be written to: EEXIST') });
  expect(isListed(said)).toBe(true);
});

test('with a configuration that cannot be: every problem is told', async () => {
  const { code, said } = await start({ PORT: '99999', LOG_LEVEL: 'loud', SECRET: 'short' });
  expect(code).toBe(1);
  expect(said.split('\n').map((line) => line.trim().split(':')[0])).toEqual([
    'The configuration is not usable',
    'PORT',
    'SECRET',
    'LOG_LEVEL',
  ]);
});

test('on a port for health that is taken', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const { code, said } = await start({ OPS_PORT: String(port) });
  other.close();
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('set OPS_PORT to a free one') });
  expect(isListed(said)).toBe(true);
});

test('at an address that this machine does not have', async () => {
  const { code, said } = await start({ HOST: '192.0.2.1' });
  expect({ code, said }).toEqual({
    code: 1,
    said: expect.stringContaining('HOST: this machine has no address 192.0.2.1'),
  });
});

test('with a file of a secret that is not there', async () => {
  const { code, said } = await start({ SECRET_FILE: join(base, 'nowhere') });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('SECRET_FILE cannot be read: ENOENT') });
});

test('in production without a secret', async () => {
  const { code, said } = await start({ NODE_ENV: 'production', MONGODB_URI: 'mongodb://127.0.0.1:1/vigil' });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('SECRET: required in production') });
});

test('with a password that the database refuses', async () => {
  const uri = new URL(process.env.TEST_MONGODB_URI as string);
  uri.password = 'wrong';
  const { code, said } = await start({ MONGODB_URI: uri.href });
  expect({ code, said }).toEqual({ code: 1, said: expect.stringContaining('refuses the user or the password') });
  expect(said).not.toContain('wrong@');
});
