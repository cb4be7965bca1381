// The measured servers, each in a separate process. A server is frozen while another one is measured.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isFreePort } from '../../src/platform/mongo/embedded/instance.js';
import { PlainError } from '../../src/program.js';
import type { Target } from './connection.js';
import { databaseUri, LOGIN } from './data.js';

/** The service; the usual server; the floor with one write per live event, and with one per tick. */
export const SERVERS = ['ours', 'usual', 'floor', 'floor-tick'] as const;
export type ServerName = (typeof SERVERS)[number];

export interface RunningServer extends Target {
  readonly processId: number;
  /** The end of its log. */
  said(): Promise<string>;
  /** Suspends the process until `wake`: it uses no CPU time and sends nothing to MongoDB. */
  freeze(): void;
  wake(): void;
  stop(): Promise<void>;
}

export interface Place {
  readonly mongodbUri: string;
  /** For logs, and for profiles if requested. */
  readonly folder: string;
  readonly profileFolder: string | null;
}

const SECRET = 'a-secret-for-measurements-0123456789-abcdefgh';
const LAST_CHARACTERS = 2_000;
const START_MS = 60_000;
const POLL_MS = 20;
const TICK_MS = '10';
const MANY = '100000';

/** The arguments of Node.js with which the service runs in production. */
export const SERVICE_ARGUMENTS: readonly string[] = JSON.parse(readFileSync('package.json', 'utf8'))
  .scripts.start.split(' ')
  .slice(1, -1);

const compiled = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** `more` are variables of its environment beside the usual ones. */
export async function startServer(
  name: ServerName,
  place: Place,
  more: Readonly<Record<string, string>> = {},
): Promise<RunningServer> {
  const port = await findPort();
  const url = `http://127.0.0.1:${port}`;
  const { program, env } = programOf(name, place.folder);
  const profile = place.profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${place.profileFolder}`];
  const file = join(place.folder, `${name}.log`);
  const log = openSync(file, 'a');
  const said = async (): Promise<string> => (await readFile(file, 'utf8')).slice(-LAST_CHARACTERS);
  const args = name === 'ours' ? SERVICE_ARGUMENTS : ['--enable-source-maps'];
  const child = spawn(process.execPath, [...profile, ...args, program], {
    // Logs as in production.
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PORT: String(port),
      SECRET,
      MQTT_PORT: '',
      MONGODB_URI: databaseUri(place.mongodbUri, name),
      ...env,
      ...more,
    },
    cwd: place.folder,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const freeze = (): void => signalIfPossible(child, 'SIGSTOP');
  const wake = (): void => signalIfPossible(child, 'SIGCONT');
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    wake();
    child.kill('SIGTERM');
    await once(child, 'exit');
  };
  try {
    const token = await untilReady(url, name, child);
    return { url, token, processId: child.pid ?? 0, said, freeze, wake, stop };
  } catch (error) {
    await stop();
    throw new PlainError(`${name} did not start: ${(error as Error).message}
${await said()}`);
  }
}

/** Windows has no such signals: all servers run all the time there. */
function signalIfPossible(child: ChildProcess, signal: 'SIGSTOP' | 'SIGCONT'): void {
  if (process.platform !== 'win32') child.kill(signal);
}

function programOf(name: ServerName, folder: string): { program: string; env: Record<string, string> } {
  if (name === 'usual') return { program: compiled('./usual.js'), env: {} };
  if (name === 'floor') return { program: compiled('./floor.js'), env: {} };
  if (name === 'floor-tick') return { program: compiled('./floor.js'), env: { TICK_MS } };
  const live = { LIVE_CONNECTIONS_PER_USER: MANY, LIVE_CONNECTIONS_PER_ADDRESS: MANY };
  // Any free port: the default one may be in use.
  const admin = { MQTT_PORT: '0', ADMIN_LOGIN: LOGIN.login, ADMIN_PASSWORD: LOGIN.password };
  return {
    program: compiled('../../src/main.js'),
    env: { ...admin, ...live, DATA_DIR: folder, WEBHOOK_NETWORKS: '127.0.0.1' },
  };
}

/** A free port below those that systems give to clients: one of those could be taken before the server starts. */
export async function findPort(): Promise<number> {
  for (;;) {
    const port = randomInt(21_000, 32_000);
    if (await isFreePort(port)) return port;
  }
}

/** Waits until the server answers. Resolves with a token; the floor accepts any. */
async function untilReady(url: string, name: ServerName, child: ChildProcess): Promise<string> {
  const untilMs = performance.now() + START_MS;
  const path = name.startsWith('floor') ? 'objects?limit=100' : 'auth/token';
  const method = path === 'auth/token' ? 'POST' : 'GET';
  const login = { body: JSON.stringify(LOGIN), headers: { 'Content-Type': 'application/json' } };
  while (performance.now() < untilMs) {
    if (child.exitCode !== null) throw new Error(`it ended with exit code ${child.exitCode}`);
    const answer = await fetch(`${url}/api/v1/${path}`, { method, ...(method === 'POST' && login) }).catch(() => null);
    if (answer?.ok) return method === 'POST' ? ((await answer.json()) as { token: string }).token : 'none';
    await wait(POLL_MS);
  }
  throw new Error('it does not answer');
}
