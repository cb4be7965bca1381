/** Before all tests: one real mongod for the whole run; every test file has a database of its own on it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultCacheFolder } from '../dist/src/config.js';
import { startEmbedded } from '../dist/src/db/embedded.js';

const quiet = { info() {}, warn() {} };

export default async function startMongod() {
  const dataFolder = await mkdtemp(join(tmpdir(), 'vigil-test-'));
  const database = await startEmbedded({
    dataFolder,
    mongodBinary: process.env.MONGOD_BINARY || null,
    searchPath: process.env.PATH ?? '',
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
    log: quiet,
  });
  process.env.TEST_MONGODB_URI = database.uri;
  globalThis.stopMongod = async () => {
    await database.stop();
    await rm(dataFolder, { recursive: true, force: true });
  };
}
