/** The real service on a free port with a database of its own, callers for it, and an exact "nothing more happened". */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll } from '@jest/globals';
import { MongoClient, ObjectId } from 'mongodb';
import { io, type Socket } from 'socket.io-client';
import type { Service, ServiceOptions, startService } from '../../src/app.js';
import { type Config, parseConfig } from '../../src/config.js';
import type { Change } from '../../src/core/change.js';
import { checkAgreement } from './agreement.js';
import { keepOnFailure } from './failure-logs.js';
import { type Answer, sendHttp } from './http-call.js';

export const ADMIN = { login: 'admin', password: 'correct horse battery' };

/** The compiled service (environment.mjs). */
const { compiled } = globalThis as unknown as { compiled: { startService: typeof startService } };

const CLOCK_BEHIND_MS = 60_000;

// Ids that tests make, as those that the service makes (environment.mjs).
Object.assign(ObjectId, { index: 0 });

export interface TestOptions {
  /** Variables of the environment beside those the fixture sets. */
  readonly env?: Record<string, string>;
  /** A clock that starts now or later: what is over by mongod's own clock, tokens among it, mongod removes at some moment. */
  readonly now?: () => number;
}

export type { Answer };

/** Calls as one user with a bearer token, or anonymous calls with null. */
export type Call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;

export interface ReceivedEvent {
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: payloads of every shape
  readonly payload: any;
  readonly position: string;
}

export interface Listener {
  readonly socket: Socket;
  /** Every event since the last `take`. */
  take(): ReceivedEvent[];
  /** The same without taking them. */
  received(): readonly ReceivedEvent[];
  /** The answer without its position. */
  subscribe(narrowing: object): Promise<{ success: boolean; message?: string; objects?: string[] }>;
  close(): void;
}

export interface TestService {
  readonly url: string;
  readonly mongodbUri: string;
  readonly service: Service;
  /** What the log was given, line by line. */
  readonly logLines: string[];
  readonly changes: Change[];
  readonly client: MongoClient;
  /** As the first administrator. */
  admin: Call;
  as(token: string | null): Call;
  /** A token of a user. */
  tokenOf(login: string, password: string): Promise<string>;
  /** `everything`: also that objects were created or removed, which most tests do before they look at events. */
  listen(token: string, everything?: 'everything'): Promise<Listener>;
  /** Resolves when every listener has received the events of all earlier writes. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the service once for all tests of a file. */
export function useService(options: TestOptions = {}): TestService {
  const holder = {} as TestService;
  beforeAll(async () => {
    Object.assign(holder, await startTestService(options));
  });
  afterAll(() => holder.stop?.());
  return holder;
}

/** Another instance on the same database, which ends with the others of the list. */
export async function startSecond(
  { mongodbUri }: TestService,
  endings: (() => unknown)[],
  options: TestOptions = {},
): Promise<TestService> {
  const other = await startTestService(options, mongodbUri);
  endings.push(
    () => other.client.close(),
    () => other.service.stop(),
  );
  return other;
}

export function testUri(name = `test-${randomBytes(6).toString('hex')}`): string {
  return (process.env.TEST_MONGODB_URI as string).replace('/vigil?', `/${name}?`);
}

export async function startTestService(options: TestOptions = {}, mongodbUri = testUri()): Promise<TestService> {
  if (options.now && options.now() < Date.now() - CLOCK_BEHIND_MS) throw new Error('the test has a clock of the past');
  const logLines: string[] = [];
  keepOnFailure('service', () => logLines.join(''));
  const changes: Change[] = [];
  const awaited = new Map<string, () => void>();
  const env = {
    PORT: '0',
    MONGODB_URI: mongodbUri,
    SECRET: 'test-secret-0123456789-abcdefghijklmnop',
    ADMIN_LOGIN: ADMIN.login,
    ADMIN_PASSWORD: ADMIN.password,
    LOG_FORMAT: 'json',
    LOG_LEVEL: 'debug',
    STOP_DELAY: '0',
    // The clients are in the same process: how late it is says nothing of the service.
    OVERLOAD_DELAY: '0',
    ...options.env,
  };
  const service = await startWithDatabase(parseConfig(env), logLines, {
    ...(options.now && { now: options.now }),
    logTo: { write: (line: string) => void logLines.push(line) },
    onChange(change) {
      changes.push(change);
      awaited.get(change.id)?.();
    },
  });
  const client = await new MongoClient(mongodbUri).connect();
  const listeners = new Set<Listener>();
  const as = (token: string | null): Call => callAs(service.url, token);
  const test: TestService = {
    url: service.url,
    mongodbUri,
    service,
    logLines,
    changes,
    client,
    as,
    admin: as(null),
    tokenOf: (login, password) => openToken(service.url, { login, password }),
    async listen(token, everything) {
      const listener = await openListener(service.url, token, {}, everything);
      listeners.add(listener);
      return listener;
    },
    async settled() {
      const id = new ObjectId();
      const passed = new Promise<void>((resolve) => awaited.set(id.toHexString(), resolve));
      // A label that no user sees: the watcher receives it, and no client does.
      await client.db().collection('labels').insertOne({ _id: id, branch: [], access: [] });
      await passed;
      await Promise.all(
        [...listeners]
          .filter(({ socket }) => socket.connected)
          .map((listener) => listener.subscribe(narrowingOf(listener))),
      );
    },
    async stop() {
      for (const listener of listeners) listener.close();
      await service.stop();
      await client.db().dropDatabase();
      await client.close();
    },
  };
  test.admin = as(await openFirstToken(test, env.ADMIN_LOGIN, env.ADMIN_PASSWORD));
  return test;
}

/**
 * On a machine that is busy with other tests, a database may take longer than the service waits before it says that there is none.
 * The tests of a file want one that has all its ports: it is started again, and what kept it is said.
 */
async function startWithDatabase(config: Config, logLines: string[], options: ServiceOptions): Promise<Service> {
  for (let triesLeft = 5; ; triesLeft--) {
    const service = await compiled.startService(config, options);
    if (!service.isWaiting) return service;
    await service.stop();
    const said = logLines.splice(0).join('');
    if (triesLeft === 1) throw new Error(`the database was away: ${said}`);
    console.warn(said);
  }
}

/**
 * On a machine on which other tests kill and fill databases, a disk may take longer than a login does: as clients do
 * after a 503, it tries once more, and prints the reason.
 */
function openFirstToken({ tokenOf, logLines }: TestService, login: string, password: string): Promise<string> {
  return tokenOf(login, password).catch((error: Error) => {
    if (!error.message.endsWith(': 503')) throw error;
    console.warn(error.message, logLines.filter((line) => line.includes('"unavailable"')).join(''));
    return tokenOf(login, password);
  });
}

const narrowings = new WeakMap<Listener, object>();
const narrowingOf = (listener: Listener): object => narrowings.get(listener) ?? {};

function callAs(url: string, token: string | null): Call {
  return async (method, path, body, headers = {}) => {
    const answer = await sendHttp(url, {
      method,
      path: path.startsWith('/') ? path : `/api/v1/${path}`,
      headers: {
        ...(token !== null && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { text: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    checkAgreement({ method, path, status: answer.status, type: answer.headers['content-type'], body: answer.body });
    return answer;
  };
}

async function openToken(url: string, credentials: { login: string; password: string }): Promise<string> {
  const { status, body } = await callAs(url, null)('POST', 'auth/token', credentials);
  if (status !== 200) throw new Error(`login as ${credentials.login}: ${status}`);
  return body.token;
}

export function openListener(
  url: string,
  token: string,
  query: Record<string, string> = {},
  everything?: 'everything',
): Promise<Listener> {
  const socket = io(url, {
    transports: ['websocket'],
    extraHeaders: { authorization: `Bearer ${token}` },
    query,
    reconnection: false,
    forceNew: true,
    timeout: 60_000,
  });
  let received: ReceivedEvent[] = [];
  socket.onAny((name, payload, detail) => {
    if (everything || !['object-created', 'object-removed'].includes(name)) {
      received.push({ name, payload, position: detail?.position });
    }
  });
  const listener: Listener = {
    socket,
    take: () => received.splice(0),
    received: () => received,
    async subscribe(narrowing) {
      const { position, ...answer } = await socket.timeout(60_000).emitWithAck('subscribe', narrowing);
      if (answer.success) narrowings.set(listener, narrowing);
      return answer;
    },
    close: () => socket.disconnect(),
  };
  received = [];
  return new Promise((resolve, reject) => {
    socket.once('connect', () => resolve(listener));
    socket.once('connect_error', reject);
  });
}
