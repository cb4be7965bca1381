/** Before all tests: one real mongod for the whole run; every test file has a database of its own on it. */
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultCacheFolder } from '../../dist/src/config.js';
import { startEmbedded } from '../../dist/src/db/embedded.js';

const memoryFolder = '/dev/shm';
const memoryNeededBytes = 4 * 1024 ** 3;

const quiet = { info() {}, warn() {} };

export default async function startMongod() {
  if (globalThis.stopMongod) return;
  const dataFolder = await mkdtemp(join(await chooseFolder(), 'vigil-test-'));
  const database = await startEmbedded({
    dataFolder,
    mongodBinary: process.env.MONGOD_BINARY || null,
    searchPath: process.env.PATH ?? '',
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
    log: quiet,
  });
  process.env.TEST_MONGODB_URI = database.uri;
  globalThis.stopMongod = async () => {
    globalThis.stopMongod = undefined;
    await database.stop();
    await rm(dataFolder, { recursive: true, force: true });
  };
}

/** Nobody cuts this machine's power during a test: where memory can hold the files, a write need not wait for a disk. */
async function chooseFolder() {
  const space = await statfs(memoryFolder).catch(() => null);
  return space !== null && space.bavail * space.bsize > memoryNeededBytes ? memoryFolder : tmpdir();
}
