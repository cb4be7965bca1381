/** The lock of a folder: one process at a time, whatever the length of the path, and free again when its holder ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type FolderLock, lockFolder } from '../../../src/platform/mongo/embedded/lock.js';
import { freezeProcess } from '../../support/freeze.js';
import { undisturbed } from '../../support/undisturbed.js';

let base: string;

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'vigil-lock-'));
});

afterAll(() => rm(base, { recursive: true, force: true }));

async function makeFolder(...parts: string[]): Promise<string> {
  const folder = join(base, ...parts);
  await mkdir(folder, { recursive: true });
  return folder;
}

async function take(folder: string): Promise<FolderLock> {
  const lock = await lockFolder(folder);
  if (!('release' in lock)) throw new Error(`held by ${lock.heldBy}`);
  return lock;
}

/** A process that holds the folder until it is killed. */
async function holdInChild(folder: string) {
  const code = `
    import { lockFolder } from ${JSON.stringify(resolve('src/platform/mongo/embedded/lock.ts'))};
    await lockFolder(${JSON.stringify(folder)});
    console.log('held');
    setInterval(() => {}, 1000);
  `;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code]);
  await once(child.stdout, 'data');
  return child;
}

test.each([
  ['a short path', ['short']],
  ['a path too long for a socket', ['long', 'x'.repeat(90), 'y'.repeat(90)]],
])('locks %s once, until its release', async (_name, parts) => {
  const folder = await makeFolder(...parts);
  const lock = await take(folder);
  expect(await lockFolder(folder)).toEqual({ heldBy: process.pid });
  await lock.release();
  await (await take(folder)).release();
  expect(await readdir(folder)).toEqual([]);
});

test('gives the lock to one of many concurrent processes', async () => {
  const folder = await makeFolder('many');
  const results = await Promise.all(Array.from({ length: 20 }, () => lockFolder(folder)));
  const locks = results.filter((result) => 'release' in result);
  expect(locks).toHaveLength(1);
  await locks[0]?.release();
});

test('detects the lock of another process until that process ends in any way', async () => {
  const folder = await makeFolder('killed');
  const child = await holdInChild(folder);
  // Who does not answer within a second has no number.
  await undisturbed(500, async () => expect(await lockFolder(folder)).toEqual({ heldBy: child.pid }));
  child.kill('SIGKILL');
  await once(child, 'exit');
  const results = await Promise.all(Array.from({ length: 5 }, () => lockFolder(folder)));
  const locks = results.filter((result) => 'release' in result);
  expect(locks).toHaveLength(1);
  await locks[0]?.release();
});

test('respects a holder that does not answer', async () => {
  const folder = await makeFolder('frozen');
  const child = await holdInChild(folder);
  await freezeProcess(Number(child.pid));
  expect(await lockFolder(folder)).toEqual({ heldBy: null });
  child.kill('SIGKILL');
  await once(child, 'exit');
  await (await take(folder)).release();
});
