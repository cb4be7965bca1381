/**
 * The database of a service that was given none: a real mongod, a replica set of one, with its data in the data folder. It is
 * kept running: when it dies it is started again at the same address.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { chmod, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { ServerLog } from './embedded/binary.js';
import { checkFirstRoom } from './embedded/disk.js';
import { type Instance, type InstanceSettings, isFreePort, pathsOf, rotateLog, uriOf } from './embedded/instance.js';
import { type FolderLock, lockFolder } from './embedded/lock.js';
import { findMongod } from './embedded/mongod.js';
import { endOrphan } from './embedded/orphan.js';
import { startReady, supervise } from './embedded/supervise.js';
import { makeFolder } from './folder.js';

/** Where the data lies and where mongod comes from. */
export type EmbeddedOptions = {
  dataFolder: string;
  /** The mongod that the operator names (MONGOD_BINARY); null to find one. */
  mongodBinary: string | null;
  /** The folders with programs (PATH). */
  searchPath: string;
  /** The user's folder for what can be fetched again. */
  cacheFolder: string;
  log: ServerLog;
  /** Memory for WiredTiger's cache. */
  cacheSizeMb?: number;
};

/** A running embedded database. */
export type Embedded = {
  /** For MongoClient. It holds the password: not for the log. */
  uri: string;
  version: string;
  /** Resolves, with the reason, when mongod is gone for good: stopped, or not to be started again. */
  whenExited: Promise<string>;
  stop(): Promise<void>;
};

const defaultCacheSizeMb = 1_024;
const keyBytes = 48;
// Below the ports that systems hand out to clients: a connection of ours must not sit on the port while mongod restarts.
const firstPort = 21_000;
const lastPort = 32_000;
const portAttempts = 20;

/** Starts the embedded database and waits until it can be written to. */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const folder = await makeFolders(options.dataFolder);
  const lock = await takeFolder(options.dataFolder, folder);
  try {
    if (!(await hasData(folder))) await checkFirstRoom(folder);
    const { mongodBinary: binary, searchPath, cacheFolder, log } = options;
    const mongod = await findMongod({ binary, searchPath, cacheFolder, log });
    const cacheSizeMb = options.cacheSizeMb ?? defaultCacheSizeMb;
    const settings = await prepare({ mongod, folder, cacheSizeMb }, log);
    const [instance, used] = await startAtSomePort(settings, log);
    log.info({ version: mongod.version, origin: mongod.origin, port: used.port, folder }, 'MongoDB started');
    const { whenExited, stop } = supervise(instance, used, log);
    const { release } = lock;
    return {
      uri: uriOf(used.key, used.port),
      version: mongod.version,
      whenExited,
      stop: () => stop().finally(release),
    };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** The address of the database that another process runs in this data folder, or null when nobody does. */
export async function findRunning(dataFolder: string): Promise<string | null> {
  const folder = resolve(dataFolder, 'mongodb');
  const lock = await lockFolder(folder);
  if ('release' in lock) {
    await lock.release();
    return null;
  }
  const paths = pathsOf(folder);
  const [key, port] = [await readFile(paths.key, 'utf8'), Number(await readFile(paths.port, 'utf8'))];
  return uriOf(key, port);
}

async function makeFolders(dataFolder: string): Promise<string> {
  const folder = resolve(dataFolder, 'mongodb');
  try {
    await makeFolder(dataFolder);
    await makeFolder(pathsOf(folder).data);
    const trial = join(folder, 'trial');
    await writeFile(trial, '');
    await rm(trial, { force: true });
    // One spelling, whichever way leads there: a mongod that was left behind is known by it.
    return await realpath(folder);
  } catch (error) {
    throw new Error(`The data folder ${dataFolder} cannot be written to: ${(error as Error).message}`);
  }
}

async function hasData(folder: string): Promise<boolean> {
  return (await readdir(pathsOf(folder).data)).length > 0;
}

async function takeFolder(dataFolder: string, folder: string): Promise<FolderLock> {
  const lock = await lockFolder(folder);
  if ('release' in lock) return lock;
  const holder = lock.heldBy === null ? 'another process' : `process ${lock.heldBy}`;
  throw new Error(
    `The data folder ${resolve(dataFolder)} is in use by ${holder}; one folder serves one service at a time`,
  );
}

async function prepare(known: Omit<InstanceSettings, 'port' | 'key'>, log: ServerLog): Promise<InstanceSettings> {
  const paths = pathsOf(known.folder);
  const key = await readOrMakeKey(paths.key);
  const lastPortUsed = Number(await readFile(paths.port, 'utf8').catch(() => '0'));
  if (lastPortUsed > 0) await endOrphan({ dataPath: paths.data, uri: uriOf(key, lastPortUsed), log });
  await rotateLog(known.folder, 0);
  return { ...known, key, port: lastPortUsed };
}

async function readOrMakeKey(file: string): Promise<string> {
  // Hexadecimal: both a key file and an address take it as it is.
  const key = await readFile(file, 'utf8').catch(() => '');
  if (!/^[0-9a-f]{32,}$/.test(key)) await writeSafely(file, randomBytes(keyBytes).toString('hex'));
  // mongod refuses a key that others can read, and a copied folder may have lost the mode.
  await chmod(file, 0o600);
  return readFile(file, 'utf8');
}

async function writeSafely(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text, { mode: 0o600 });
  await rename(`${file}.new`, file);
}

async function startAtSomePort(settings: InstanceSettings, log: ServerLog): Promise<[Instance, InstanceSettings]> {
  for (let attempt = 1; ; attempt += 1) {
    const port = attempt === 1 && (await isUsable(settings.port)) ? settings.port : await chooseFreePort();
    const used = { ...settings, port };
    // mongod asks whoever sits at the old port whether it is its own address, and waits 30 s for one that says nothing.
    if (settings.port > 0 && port !== settings.port)
      log.warn({ port }, `Port ${settings.port} is taken; MongoDB moves`);
    // Before the start: were we killed during it, the next start must know where to look.
    await writeSafely(pathsOf(settings.folder).port, String(port));
    try {
      return [await startReady(used), used];
    } catch (error) {
      if (!/address already in use/i.test((error as Error).message) || attempt === portAttempts) throw error;
    }
  }
}

async function isUsable(port: number): Promise<boolean> {
  return port > 0 && isFreePort(port);
}

async function chooseFreePort(): Promise<number> {
  for (let attempt = 0; attempt < portAttempts; attempt += 1) {
    const port = randomInt(firstPort, lastPort);
    if (await isFreePort(port)) return port;
  }
  throw new Error(`No free port between ${firstPort} and ${lastPort} was found for MongoDB`);
}
