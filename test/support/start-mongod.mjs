/** Before all tests: one real mongod for the whole run; every test file has a database of its own on it. */
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

const memoryFolder = '/dev/shm';
const memoryNeededBytes = 4 * 1024 ** 3;

const quiet = { info() {}, warn() {} };

export default async function startMongod() {
  if (globalThis.stopMongod) return;
  // The service of the tests is the compiled one (environment.mjs).
  execFileSync(process.execPath, [join(import.meta.dirname, '../../scripts/prepare.mjs'), '--quiet'], {
    stdio: 'inherit',
  });
  const { defaultCacheFolder } = await import('../../dist/src/config.js');
  const { startEmbedded } = await import('../../dist/src/db/embedded/start.js');
  const dataFolder = await mkdtemp(join(await chooseFolder(), 'vigil-test-'));
  const database = await startEmbedded({
    dataFolder,
    mongodBinary: process.env.MONGOD_BINARY || null,
    searchPath: process.env.PATH ?? '',
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
    log: quiet,
  });
  process.env.TEST_MONGODB_URI = database.uri;
  const endAtOnce = () => {
    const processId = Number(readFileSync(join(dataFolder, 'mongodb', 'data', 'mongod.lock'), 'utf8'));
    if (processId > 0) process.kill(processId, 'SIGKILL');
    rmSync(dataFolder, { recursive: true, force: true, maxRetries: 10 });
  };
  // A run that is cut off by Ctrl-C has no teardown.
  const leave = () => process.exit(130);
  process.once('exit', endAtOnce);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, leave);
  globalThis.stopMongod = async () => {
    globalThis.stopMongod = undefined;
    process.off('exit', endAtOnce);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.off(signal, leave);
    await database.stop();
    await rm(dataFolder, { recursive: true, force: true });
  };
}

/** Nobody cuts this machine's power during a test: where memory can hold the files, a write need not wait for a disk. */
async function chooseFolder() {
  const space = await statfs(memoryFolder).catch(() => null);
  return space !== null && space.bavail * space.bsize > memoryNeededBytes ? memoryFolder : tmpdir();
}
