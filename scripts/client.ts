// Shared by the command-line scripts: parses arguments, finds credentials, logs in, and sends requests to the public API with
// retries, so that scripts survive a restart of the service.
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { config as loadEnv } from 'dotenv';

/** A JSON object of an answer. */
export type Json = Record<string, unknown>;

/** An error that is shown as its message only; `status` is the status of the answer, if there was one. */
export type Failure = Error & { expected: true; status?: number };

/** A given token, or a login whose token is renewed when it expires. */
export type Credentials = { token: string } | { login: string; password: string };

/** The arguments of every script. */
export interface Shared {
  url?: string | undefined;
  token?: string | undefined;
  login?: string | undefined;
  password?: string | undefined;
}

/** An authenticated client of one service. */
export interface Client {
  url: string;
  token: string;
  credentials: Credentials;
  /** The maximum number of attempts while the service is unavailable or busy. */
  attempts: number;
  signal: AbortSignal;
  /** Reports that a request is retried. */
  say(message: string): void;
}

const SHARED_OPTIONS = {
  url: { type: 'string' },
  token: { type: 'string' },
  login: { type: 'string' },
  password: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

const SHARED_HELP = `
  --url <address>      the service (default http://127.0.0.1:$PORT, PORT or 8080)
  --token <token>      credentials; the first of these that is given: --token; --login with --password; VIGIL_TOKEN;
  --login <name>         ADMIN_LOGIN (or "admin") with ADMIN_PASSWORD, from the environment or .env;
  --password <text>      the password typed at the terminal
                       Other users of this computer can see --token and --password (ps): prefer the environment.
  -h, --help           shows this text`;

const TIMEOUT_MS = 30_000;
const MAX_WAIT_MS = 30_000;
// A longer timer would overflow and fire at once.
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Creates an error that is shown as its message only. */
export function failure(message: string, status?: number): Failure {
  return Object.assign(new Error(message), { expected: true as const, ...(status !== undefined && { status }) });
}

/** Parses the command line, including the arguments of every script. With `--help`, prints the help and exits. */
export function parseArguments<T extends NonNullable<ParseArgsConfig['options']>>(options: T, help: string) {
  try {
    const { values } = parseArgs({ options: { ...SHARED_OPTIONS, ...options }, allowNegative: true });
    if ((values as { help?: boolean }).help) {
      console.log(help + SHARED_HELP);
      process.exit(0);
    }
    return values;
  } catch (error) {
    throw failure(`${(error as Error).message.split('. ')[0]}. --help lists the arguments.`);
  }
}

/** Parses an argument that is a positive number. */
export function parsePositive(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text);
  if (!(value > 0 && value < Number.POSITIVE_INFINITY)) throw failure(`--${name} must be a number above 0: ${text}`);
  return value;
}

/** Runs a script. Ctrl-C aborts its signal, a second one ends it at once. Errors are printed and set the exit code. */
export async function runScript(main: (signal: AbortSignal) => Promise<number>): Promise<void> {
  const stop = new AbortController();
  const onSignal = () => (stop.signal.aborted ? process.exit(130) : stop.abort());
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The reader (head, a pager) has closed the pipe: not an error.
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  try {
    process.exitCode = await main(stop.signal);
  } catch (error) {
    const { expected, code, message } = error as Failure & { code?: string };
    // A missing or malformed file is reported without a stack trace as well.
    console.error(expected || /^(E[A-Z]+$|CSV_)/.test(code ?? '') || stop.signal.aborted ? message : error);
    process.exitCode = 1;
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

/** Waits until the time is over or the signal is aborted. Never throws. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(Math.min(ms, MAX_TIMER_MS), undefined, { signal }).catch(() => undefined);
}

/** Finds the credentials; asks at the terminal if there are none. */
export async function findCredentials(given: Shared, env: NodeJS.ProcessEnv): Promise<Credentials> {
  if (given.token) return { token: given.token };
  if (!given.login && env.VIGIL_TOKEN) return { token: env.VIGIL_TOKEN };
  const administrator = env.ADMIN_LOGIN || 'admin';
  const login = given.login || administrator;
  const password = given.password || (login === administrator && env.ADMIN_PASSWORD);
  if (password) return { login, password };
  if (process.stdin.isTTY) return { login, password: await askPassword(login) };
  throw failure('No credentials: set VIGIL_TOKEN, or ADMIN_LOGIN and ADMIN_PASSWORD, or see --help.');
}

/** Logs in with the credentials from the arguments, the environment or `.env`. */
export async function connect(given: Shared, signal: AbortSignal, attempts = 5): Promise<Client> {
  loadEnv({ quiet: true });
  const credentials = await findCredentials(given, process.env);
  const url = toBase(given.url ?? `http://127.0.0.1:${process.env.PORT || 8080}`);
  const say = (message: string) => console.error(message);
  const client: Client = { url, token: '', credentials, attempts: 5, signal, say };
  await renewToken(client);
  return Object.assign(client, { attempts });
}

/** Gets a new token for a login. Returns false for a given token, which cannot be renewed. */
export async function renewToken(client: Client): Promise<boolean> {
  if ('token' in client.credentials) {
    const changed = client.token !== client.credentials.token;
    client.token = client.credentials.token;
    return changed;
  }
  client.token = '';
  const answer = await request(client, 'POST', '/api/v1/auth/token', client.credentials);
  if (typeof answer.token !== 'string') throw failure(`${client.url} issued no token: is it a Vigil service?`);
  client.token = answer.token;
  return true;
}

/** Sends a request; retries while the service is unavailable or busy. Throws a {@link Failure} that describes the answer. */
export async function request(client: Client, method: string, path: string, body?: unknown): Promise<Json> {
  let renewed = client.token === '';
  for (let attempt = 1; ; attempt++) {
    const answer = await send(client, method, path, body);
    if (answer.status >= 200 && answer.status < 300) return answer.body;
    if (answer.status === 401 && !renewed) {
      renewed = true;
      if (await renewToken(client)) continue;
    }
    if (answer.status === 401 && client.token === '') throw failure('The login or the password is wrong', 401);
    const why = `${describe(answer.status, answer.body)} (${method} ${client.url}${path})`;
    const wait = waitBefore(attempt, answer.status, answer.retryAfter);
    if (wait === null || attempt >= client.attempts || client.signal.aborted) throw failure(why, answer.status);
    client.say(`${why}; trying again in ${(wait / 1000).toFixed(1)} s`);
    await pause(wait, client.signal);
    if (client.signal.aborted) throw failure(why, answer.status);
  }
}

/** Like a GET {@link request}, but returns null for a 404. */
export async function find(client: Client, path: string): Promise<Json | null> {
  try {
    return await request(client, 'GET', path);
  } catch (error) {
    if ((error as Failure).status === 404) return null;
    throw error;
  }
}

/** The time to wait before the next attempt, in ms; null if a retry cannot help. */
export function waitBefore(attempt: number, status: number, retryAfter: string | null): number | null {
  // 0: there was no answer. A 429 without Retry-After is not retried.
  if (![0, 502, 503, 504].includes(status) && !(status === 429 && retryAfter)) return null;
  if (retryAfter) {
    const wait = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.now();
    if (wait >= 0) return wait;
  }
  // With jitter, so that many devices do not reconnect at the same moment.
  return Math.min(MAX_WAIT_MS, 500 * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
}

/** Describes an error answer, with the server's help text if there is one. */
export function describe(status: number, body: Json): string {
  if (status === 0) return `No answer: ${body.message}`;
  const help = (body.helper as Json | undefined)?.message;
  return `${status} ${body.message ?? ''}${help ? `: ${help}` : ''}`.trim();
}

interface Answer {
  status: number;
  body: Json;
  retryAfter: string | null;
}

async function send(client: Client, method: string, path: string, body: unknown): Promise<Answer> {
  const headers: Record<string, string> = { accept: 'application/json' };
  if (client.token) headers.authorization = `Bearer ${client.token}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  try {
    const response = await fetch(client.url + path, {
      method,
      headers,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: toJson(text), retryAfter: response.headers.get('retry-after') };
  } catch (error) {
    const { cause, message } = error as Error & { cause?: Error & { code?: string } };
    return { status: 0, body: { message: cause?.message || cause?.code || message }, retryAfter: null };
  }
}

function toJson(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return { message: text.slice(0, 200) };
  }
}

function toBase(url: string): string {
  return (/^https?:\/\//.test(url) ? url : `http://${url}`).replace(/\/+$/, '');
}

/** Asks for a password without showing it. */
export function askPassword(login: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true });
  process.stderr.write(`Password of ${login}: `);
  return new Promise((resolve, reject) => {
    terminal.on('SIGINT', () => terminal.close());
    terminal.on('close', () => {
      process.stderr.write('\n');
      reject(failure('No password given.'));
    });
    terminal.question('', (answer) => {
      resolve(answer);
      terminal.close();
    });
  });
}
