/** Mongod programs: location, libraries, and the check that they run on this machine. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** A mongod that runs on this machine. */
export type Mongod = {
  file: string;
  /** Libraries for this program only; null when it needs none. */
  libraryFolder: string | null;
  version: string;
  /** The source of the program, for the log. */
  origin: string;
};

/** The target machine of a program. */
export type Machine = { platform: NodeJS.Platform; arch: string };

export type ServerLog = { info(fields: object, message: string): void; warn(fields: object, message: string): void };

/** The oldest MongoDB the service works with. */
export const oldestMongo = '8.0';

const answerTimeoutMs = 20_000;

/** Runs `mongod --version` and returns the version; throws an error with the program's message when it does not run. */
export async function readVersion(file: string, libraryFolder: string | null): Promise<string> {
  const options = { timeout: answerTimeoutMs, windowsHide: true, ...libraryEnvironment(libraryFolder) };
  const { stdout } = await promisify(execFile)(file, ['--version'], options).catch(
    (error: Error & { stderr?: string }) => {
      throw new Error((error.stderr?.trim() || error.message).split('\n')[0]);
    },
  );
  const version = /db version v(\d+\.\d+\.\d+\S*)/.exec(stdout)?.[1];
  if (!version) throw new Error(`${file} does not answer like mongod`);
  return version;
}

/** The environment for a mongod with its own libraries, which no other program may load. */
export function libraryEnvironment(libraryFolder: string | null): { env?: NodeJS.ProcessEnv } {
  return libraryFolder ? { env: { LD_LIBRARY_PATH: libraryFolder } } : {};
}

export function isNewEnough(version: string): boolean {
  return version.localeCompare(oldestMongo, 'en', { numeric: true }) >= 0;
}
