/** The embedded database on a small disk. Needs the right to mount a disk in memory. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { defaultCacheFolder } from '../../src/config.js';
import { startEmbedded } from '../../src/db/embedded.js';

let folder: string;
let isMounted = false;
const start = () =>
  startEmbedded({
    dataFolder: folder,
    mongodBinary: process.env.MONGOD_BINARY || null,
    searchPath: process.env.PATH ?? '',
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
    log: { info: () => undefined, warn: () => undefined },
  });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'vigil-small-'));
  isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=700m', 'tmpfs', folder]).status === 0;
  if (!isMounted) console.warn('no disk can be mounted here: the test of a small disk is left out');
});
afterAll(async () => {
  if (isMounted) spawnSync('umount', ['-l', folder]);
  await rm(folder, { recursive: true, force: true });
});

test('says how much room a new database needs where there is too little, and takes what is enough', async () => {
  if (!isMounted) return;
  const filler = join(folder, 'filler');
  await writeFile(filler, Buffer.alloc(300 * 1024 ** 2));
  await expect(start()).rejects.toThrow(/Too little room .* MiB .*DATA_DIR/);
  await rm(filler);
  await (await start()).stop();
  // A database that is there is started with whatever room is left.
  await writeFile(filler, Buffer.alloc(200 * 1024 ** 2));
  await (await start()).stop();
}, 120_000);
