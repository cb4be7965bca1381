/**
 * The embedded database of a service without MONGODB_URI: a real mongod as a single-member replica set, with its data in the data
 * folder. When it exits, it is restarted on the same port.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { chmod, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { ServerLog } from './binary.js';
import { createFolder } from './data-folder.js';
import { checkFreeSpace, describeFullDisk } from './disk.js';
import { type Instance, type InstanceSettings, isFreePort, pathsOf, rotateLog, uriOf } from './instance.js';
import { type FolderLock, lockFolder } from './lock.js';
import { findMongod } from './mongod.js';
import { endOrphan } from './orphan.js';
import { startReady, supervise } from './supervise.js';

export type EmbeddedOptions = {
  dataFolder: string;
  /** The mongod that the operator names (MONGOD_BINARY); null to find one. */
  mongodBinary: string | null;
  /** The folders with programs (PATH). */
  searchPath: string;
  /** The user's folder for fetched programs. */
  cacheFolder: string;
  log: ServerLog;
  /** The size of WiredTiger's cache. */
  cacheSizeMb?: number;
};

/** A running embedded database. */
export type Embedded = {
  /** For MongoClient. It contains the password, so it must not be logged. */
  uri: string;
  version: string;
  /** Resolves with the reason when mongod is stopped, or cannot be restarted. */
  whenExited: Promise<string>;
  stop(): Promise<void>;
};

const defaultCacheSizeMb = 1_024;
const keyBytes = 48;
// Below the ephemeral ports: a client connection must not take the port while mongod restarts.
const firstPort = 21_000;
const lastPort = 32_000;
const portAttempts = 20;

/** Starts the embedded database and waits until it is writable. */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const folder = await createFolders(options.dataFolder);
  const lock = await lockDataFolder(options.dataFolder, folder);
  try {
    if (!(await hasData(folder))) await checkFreeSpace(folder);
    const { mongodBinary: binary, searchPath, cacheFolder, log } = options;
    const mongod = await findMongod({ binary, searchPath, cacheFolder, log });
    const cacheSizeMb = options.cacheSizeMb ?? defaultCacheSizeMb;
    const [instance, used] = await prepare({ mongod, folder, cacheSizeMb }, log)
      .then((settings) => startAtSomePort(settings, log))
      .catch(async (error: Error) => {
        const advice = await describeFullDisk(folder);
        throw advice === null ? error : new Error(`${advice} (${error.message})`);
      });
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

/** The URI of the database that another process runs in this data folder; null when none does. */
export async function findRunning(dataFolder: string): Promise<string | null> {
  const folder = resolve(dataFolder, 'mongodb');
  const lock = await lockFolder(folder);
  if ('release' in lock) {
    await lock.release();
    return null;
  }
  const paths = pathsOf(folder);
  const key = await readFile(paths.key, 'utf8');
  const port = Number(await readFile(paths.port, 'utf8'));
  return uriOf(key, port);
}

async function createFolders(dataFolder: string): Promise<string> {
  const folder = resolve(dataFolder, 'mongodb');
  try {
    await createFolder(dataFolder);
    await createFolder(pathsOf(folder).data);
    const probe = join(folder, 'trial');
    await writeFile(probe, '');
    await rm(probe, { force: true });
    // The canonical path identifies an orphaned mongod, whatever path led to the folder.
    return await realpath(folder);
  } catch (error) {
    throw new Error(`The data folder ${dataFolder} cannot be written to: ${(error as Error).message}`);
  }
}

async function hasData(folder: string): Promise<boolean> {
  return (await readdir(pathsOf(folder).data)).length > 0;
}

async function lockDataFolder(dataFolder: string, folder: string): Promise<FolderLock> {
  const lock = await lockFolder(folder);
  if ('release' in lock) return lock;
  const holder = lock.heldBy === null ? 'another process' : `process ${lock.heldBy}`;
  throw new Error(
    `The data folder ${resolve(dataFolder)} is in use by ${holder}; one folder serves one service at a time`,
  );
}

async function prepare(known: Omit<InstanceSettings, 'port' | 'key'>, log: ServerLog): Promise<InstanceSettings> {
  const paths = pathsOf(known.folder);
  const key = await getOrCreateKey(paths.key);
  const lastPortUsed = Number(await readFile(paths.port, 'utf8').catch(() => '0'));
  if (lastPortUsed > 0) await endOrphan({ dataPath: paths.data, uri: uriOf(key, lastPortUsed), log });
  await rotateLog(known.folder, 0);
  return { ...known, key, port: lastPortUsed };
}

async function getOrCreateKey(file: string): Promise<string> {
  // Hexadecimal, which a key file and a URI accept unchanged.
  const key = await readFile(file, 'utf8').catch(() => '');
  if (!/^[0-9a-f]{32,}$/.test(key)) await writeSafely(file, randomBytes(keyBytes).toString('hex'));
  // mongod refuses a key that others can read, and a copy of a folder may lose the mode.
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
    // With the old port, mongod would ask the program there whether it is mongod itself, and wait 30 s for an answer.
    if (settings.port > 0 && port !== settings.port)
      log.warn({ port }, `Port ${settings.port} is taken; MongoDB uses another`);
    // Stored before the start: if this process is killed meanwhile, the next start finds the orphan.
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
