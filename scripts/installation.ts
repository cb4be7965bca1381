// Where the database of an installation is, for scripts that work on it themselves: the one of MONGODB_URI, the embedded one
// of a service that runs, or, where none runs, the embedded one, started for as long as it is needed.
import { access } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { config as loadEnv } from 'dotenv';
import { type Config, readConfig, withFiles } from '../src/config.js';
import { findRunning, startEmbedded } from '../src/db/embedded.js';
import { failure, runScript } from './client.js';

/** Runs a script; whatever goes wrong is told as a sentence. */
export function runPlainly(main: () => Promise<number>): Promise<void> {
  return runScript(() =>
    main().catch((error: Error) => {
      throw failure(error.message);
    }),
  );
}

/** Reads the command line; prints the help and ends when asked to. */
export function readPlainArguments<T extends NonNullable<ParseArgsConfig['options']>>(options: T, help: string) {
  const { values } = parseArgs({ options: { ...options, help: { type: 'boolean', short: 'h' } } });
  if (!(values as { help?: boolean }).help) return values;
  console.log(help);
  return process.exit(0);
}

/** What the service would read; what it needs beside its database is of no interest here. */
export function readInstallation(): Config {
  loadEnv({ quiet: true });
  const { DATA_DIR, DATA_DIR_FILE, MONGODB_URI, MONGODB_URI_FILE, MONGOD_BINARY, MONGOD_BINARY_FILE } = process.env;
  const database = { DATA_DIR, DATA_DIR_FILE, MONGODB_URI, MONGODB_URI_FILE, MONGOD_BINARY, MONGOD_BINARY_FILE };
  const { PATH, XDG_CACHE_HOME, LOCALAPPDATA } = process.env;
  try {
    return readConfig({ ...withFiles(database), PATH, XDG_CACHE_HOME, LOCALAPPDATA });
  } catch (error) {
    throw failure((error as Error).message);
  }
}

/** Works on the database; `alone` refuses where a service runs on the embedded one. */
export async function withDatabase<T>(config: Config, alone: boolean, work: (uri: string) => Promise<T>): Promise<T> {
  if (config.mongodbUri !== null) return work(config.mongodbUri);
  const isThere = await access(join(config.dataFolder, 'mongodb')).then(
    () => true,
    () => false,
  );
  if (!isThere && !alone) throw failure(`There is no data in ${resolve(config.dataFolder)} (DATA_DIR).`);
  const running = isThere ? await findRunning(config.dataFolder) : null;
  if (running !== null) {
    if (alone) throw failure(`Vigil runs on ${resolve(config.dataFolder)}: stop it first.`);
    return work(running);
  }
  const log = { info: () => undefined, warn: (_details: unknown, message?: string) => console.error(message ?? '') };
  const { dataFolder, mongodBinary, searchPath, cacheFolder } = config;
  const embedded = await startEmbedded({ dataFolder, mongodBinary, searchPath, cacheFolder, log });
  try {
    return await work(embedded.uri);
  } finally {
    await embedded.stop();
  }
}

/** Where the secret is kept that signs sessions and tokens: no part of the database. */
export function secretOf(config: Config): string {
  return config.mongodbUri === null ? `SECRET, or the file ${resolve(config.dataFolder, 'secret')}` : 'SECRET';
}

/** For a person: 1234567 is 1.2 MB. */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const at = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${(bytes / 1_000 ** at).toFixed(at === 0 ? 0 : 1)} ${units[at]}`;
}
