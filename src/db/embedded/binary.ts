/** One mongod program: where it lies, which libraries it needs, and the proof that it runs here. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** A mongod that was seen to run. */
export type Mongod = {
  file: string;
  /** Libraries that only this program is to see; null when it needs none. */
  libraryFolder: string | null;
  version: string;
  /** For the log: where it came from. */
  origin: string;
};

/** The machine that a program is for. */
export type Machine = { platform: NodeJS.Platform; arch: string };

/** The part of the logger that the embedded server uses. */
export type ServerLog = { info(fields: object, message: string): void; warn(fields: object, message: string): void };

/** The oldest MongoDB the service works with. */
export const oldestMongo = '8.0';

const answerTimeoutMs = 20_000;

/** Runs `mongod --version` and gives the version; throws with what the program said when it does not run. */
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

/** The environment for a mongod with libraries of its own: nothing else on this machine may load those. */
export function libraryEnvironment(libraryFolder: string | null): { env?: NodeJS.ProcessEnv } {
  return libraryFolder ? { env: { LD_LIBRARY_PATH: libraryFolder } } : {};
}

/** Whether the version is new enough for the service. */
export function isNewEnough(version: string): boolean {
  return version.localeCompare(oldestMongo, 'en', { numeric: true }) >= 0;
}
