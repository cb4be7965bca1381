/** The address and token of the command line: VIGIL_URL and VIGIL_TOKEN, or what `vigil login` stored in the configuration folder. */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

/** A stored login. */
export interface Profile {
  readonly url: string;
  readonly token: string;
  readonly login: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The path of the stored login: by XDG, or in AppData on Windows. */
export function profileFile(env: Environment, platform: string = process.platform): string {
  const folder = platform === 'win32' ? env.APPDATA : env.XDG_CONFIG_HOME;
  return join(folder || join(homedir(), '.config'), 'vigil', 'login.json');
}

/** The stored login; null when there is none. */
export async function readProfile(file: string): Promise<Profile | null> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Profile;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Error(`${file} cannot be read: ${(error as Error).message}. Run vigil login again.`);
  }
}

/** Stores a login that only its user can read. */
export async function writeProfile(file: string, profile: Profile): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}`;
  await writeFile(temporary, `${JSON.stringify(profile, null, 2)}\n`, { mode: 0o600 });
  await rename(temporary, file);
}

export async function removeProfile(file: string): Promise<void> {
  await rm(file, { force: true });
}

/** The address and the token of the next command. A stored token is only sent to the address that issued it. */
export function chooseProfile(
  env: Environment,
  stored: Profile | null,
  url = env.VIGIL_URL || undefined,
): { url: string; token: string | null } {
  const address = toBase(url ?? stored?.url ?? `http://127.0.0.1:${env.PORT || 8080}`);
  if (env.VIGIL_TOKEN) return { url: address, token: env.VIGIL_TOKEN };
  return { url: address, token: stored?.url === address ? stored.token : null };
}

/** An address without a slash at the end; http without a scheme. */
export function toBase(url: string): string {
  return (/^https?:\/\//.test(url) ? url : `http://${url}`).replace(/\/+$/, '');
}
