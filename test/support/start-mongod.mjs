/**
 * Before all tests: a replica set of one real mongod for the whole run. Every test file has a database of its own on it. The program
 * is the one that the embedded database finds.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, statfs } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { MongoMemoryReplSet } from 'mongodb-memory-server';

const memoryFolder = '/dev/shm';
const memoryNeededBytes = 4 * 1024 ** 3;
const cacheGb = 1;
const oplogMb = 2_048;
const startMs = 60_000;
const linesKept = 100;
const snapshotsS = 10;

const quiet = { info() {}, warn() {} };

export default async function startMongod() {
  if (globalThis.stopMongod) return;
  // The service of the tests is the compiled one (environment.mjs).
  execFileSync(process.execPath, [join(import.meta.dirname, '../../scripts/prepare.mjs'), '--quiet'], {
    stdio: 'inherit',
  });
  const { defaultCacheFolder } = await import('../../dist/src/config.js');
  const { libraryEnvironment } = await import('../../dist/src/platform/mongo/embedded/binary.js');
  const { findMongod } = await import('../../dist/src/platform/mongo/embedded/mongod.js');
  // The replica sets of tests use it, too.
  process.env.TEST_DATA_FOLDER = await chooseFolder();
  const mongod = await findMongod({
    binary: process.env.MONGOD_BINARY || null,
    searchPath: process.env.PATH ?? '',
    cacheFolder: defaultCacheFolder(process.env, homedir(), process.platform),
    log: quiet,
  });
  const key = randomBytes(16).toString('hex');
  const set = await MongoMemoryReplSet.create({
    binary: { systemBinary: mongod.file, version: mongod.version },
    instanceOpts: [
      {
        dbPath: await mkdtemp(join(process.env.TEST_DATA_FOLDER, 'vigil-test-')),
        storageEngine: 'wiredTiger',
        launchTimeout: startMs,
      },
    ],
    replSet: {
      name: 'vigil',
      auth: { enable: true, keyfileContent: key },
      storageEngine: 'wiredTiger',
      args: [
        '--wiredTigerCacheSizeGB',
        String(cacheGb),
        '--oplogSize',
        String(oplogMb),
        '--setParameter',
        'diagnosticDataCollectionEnabled=false',
        // Files of removed databases stay open for this time: for the default of 300 s, those of a whole run are more than 20,000.
        '--setParameter',
        `minSnapshotHistoryWindowInSeconds=${snapshotsS}`,
      ],
      spawn: libraryEnvironment(mongod.libraryFolder),
    },
  });
  // Direct: tests put proxies before it, which a client that looks for the members of the set would pass by. As MongoDB's internal
  // user: tests create and drop all others.
  const { port } = set.servers[0].instanceInfo;
  process.env.TEST_MONGODB_URI = `mongodb://__system:${key}@127.0.0.1:${port}/vigil?directConnection=true&authSource=local&authMechanism=SCRAM-SHA-256`;
  const stopWatching = reportEarlyEnd(set.servers[0].instanceInfo.instance.mongodProcess);
  globalThis.stopMongod = async () => {
    globalThis.stopMongod = undefined;
    stopWatching();
    await set.stop({ doCleanup: true, force: true });
  };
}

/** Says why the mongod of the whole run ended before its tests: all later ones fail only with "the database was away". */
function reportEarlyEnd(mongod) {
  let lastLines = [];
  mongod.stdout.on('data', (chunk) => {
    lastLines = [...lastLines, ...String(chunk).split('\n')].slice(-linesKept);
  });
  const onExit = async (code, signal) => {
    const space = await statfs(process.env.TEST_DATA_FOLDER);
    const freeMb = Math.round((space.bavail * space.bsize) / 1024 ** 2);
    console.error(
      `mongod ended by itself: ${signal ?? code}, ${freeMb} MB free for its files\n${lastLines.join('\n')}`,
    );
  };
  mongod.once('exit', onExit);
  return () => mongod.off('exit', onExit);
}

/** No power is cut during a test: where memory can hold the files, a write need not wait for a disk. */
async function chooseFolder() {
  const space = await statfs(memoryFolder).catch(() => null);
  return space !== null && space.bavail * space.bsize > memoryNeededBytes ? memoryFolder : tmpdir();
}
