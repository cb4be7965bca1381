// Gives scripts access to the database of an installation: the one of MONGODB_URI, the embedded one of a running service, or the
// embedded one, started for the duration of the script.
import { access } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { config as loadEnv } from 'dotenv';
import { type Config, parseConfig, withFiles } from '../src/config.js';
import { findRunning, startEmbedded } from '../src/platform/mongo/embedded/start.js';
import { PlainError, runProgram } from '../src/program.js';

/** Runs a script and prints any error as its message only. */
export const runPlainly = (main: (signal: AbortSignal) => Promise<void>): Promise<void> =>
  runProgram(main, (error) => (error as Error).message);

/** Parses the command line. With `--help`, prints the help and exits. */
export function readPlainArguments<T extends NonNullable<ParseArgsConfig['options']>>(options: T, help: string) {
  const { values } = parseArgs({ options: { ...options, help: { type: 'boolean', short: 'h' } } });
  if (!(values as { help?: boolean }).help) return values;
  console.log(help);
  return process.exit(0);
}

/** Reads the configuration of the database like the service; other settings are ignored, even invalid ones. */
export function readInstallation(): Config {
  loadEnv({ quiet: true });
  const { DATA_DIR, DATA_DIR_FILE, MONGODB_URI, MONGODB_URI_FILE, MONGOD_BINARY, MONGOD_BINARY_FILE } = process.env;
  const database = { DATA_DIR, DATA_DIR_FILE, MONGODB_URI, MONGODB_URI_FILE, MONGOD_BINARY, MONGOD_BINARY_FILE };
  const { PATH, XDG_CACHE_HOME, LOCALAPPDATA } = process.env;
  try {
    return parseConfig({ ...withFiles(database), PATH, XDG_CACHE_HOME, LOCALAPPDATA });
  } catch (error) {
    throw new PlainError((error as Error).message);
  }
}

/** Runs work on the database. With `alone`, fails if a service is running on the embedded database. */
export async function withDatabase<T>(config: Config, alone: boolean, work: (uri: string) => Promise<T>): Promise<T> {
  if (config.mongodbUri !== null) return work(config.mongodbUri);
  const exists = await access(join(config.dataFolder, 'mongodb')).then(
    () => true,
    () => false,
  );
  if (!exists && !alone) throw new PlainError(`There is no data in ${resolve(config.dataFolder)} (DATA_DIR).`);
  const running = exists ? await findRunning(config.dataFolder) : null;
  if (running !== null) {
    if (alone) throw new PlainError(`Vigil runs on ${resolve(config.dataFolder)}: stop it first.`);
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

/** The location of the secret that signs sessions and tokens. It is not part of the database. */
export function secretOf(config: Config): string {
  return config.mongodbUri === null ? `SECRET, or the file ${resolve(config.dataFolder, 'secret')}` : 'SECRET';
}

/** Formats 1234567 as "1.2 MB". */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  return `${(bytes / 1_000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}
