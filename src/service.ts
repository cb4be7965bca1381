/** The composition root: every part of the service is made here, and nowhere else; its ending is the start backwards. */
import type { RequestListener } from 'node:http';
import type { DestinationStream, Logger } from 'pino';
import { createAttempts } from './auth/attempts.js';
import { createIdentity, type Identity } from './auth/identity.js';
import { createPasswords, generatePassword, type Passwords } from './auth/password.js';
import { keepSecret } from './auth/secret.js';
import type { Config } from './config.js';
import { type Audit, createAudit } from './db/audit.js';
import { type Caches, createCaches } from './db/caches.js';
import { startWatcher, type Watcher } from './db/changes.js';
import { createWatcherClient, type Database } from './db/connect.js';
import { translated } from './db/documents.js';
import { startEmbedded } from './db/embedded.js';
import { findObjectIds } from './db/entities.js';
import { startExpiry } from './db/expiry.js';
import { createHistory } from './db/history.js';
import { createIngest } from './db/ingest.js';
import { openDatabase } from './db/open.js';
import { poolOf } from './db/pool.js';
import { toApiError } from './errors.js';
import { createApp } from './http/app.js';
import { type Arrivals, createArrivals } from './http/arrivals.js';
import { createDoor, type Door } from './http/door.js';
import { createRules } from './http/rules.js';
import { guardianOf, toEvents } from './live/events.js';
import { createHub, type Hub } from './live/hub.js';
import { createLog } from './log.js';
import type { Change } from './model/change.js';
import { createStampClock } from './model/packet.js';
import { createLife, type Life, later, whenThere } from './ops/life.js';
import { startWatch, type Watch } from './ops/watch.js';

export interface ServiceOptions {
  readonly now?: () => number;
  /** Told of every change after the sockets were. */
  readonly onChange?: (change: Change) => void;
  /** Told of the first administrator's password as soon as it holds: a start that fails later must not lose it. */
  readonly onPassword?: (password: string) => void;
  /** Where log lines go; standard output when not given. */
  readonly logTo?: DestinationStream;
}

export interface Service {
  readonly url: string;
  /** Where health and metrics are told; null for nowhere. */
  readonly opsUrl: string | null;
  /** Whether it refuses every request until its database is there. */
  readonly isWaiting: boolean;
  /** Given once: when this start made the first administrator with a password of its own. */
  readonly generatedPassword: string | null;
  /** Resolves with the reason, or the error, when the service cannot go on by itself. */
  readonly failed: Promise<unknown>;
  stop(): Promise<void>;
}

/**
 * Starts every part, listening last. While the database is away the service listens all the same, refuses every request
 * with 503, and opens by itself when the database is there. A start that fails ends what it had begun.
 */
export async function startService(config: Config, options: ServiceOptions = {}): Promise<Service> {
  const life = createLife();
  try {
    return { ...(await start(config, options, life)), stop: life.end };
  } catch (error) {
    await life.end();
    throw error;
  }
}

interface Parts extends ServiceOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly now: () => number;
  readonly secrets: readonly string[];
  readonly uri: string;
  readonly door: Door;
  readonly watch: Watch;
  /** Told each time that the database is not there yet. */
  readonly onAway: (error: unknown) => void;
}

async function start(config: Config, options: ServiceOptions, life: Life): Promise<Omit<Service, 'stop'>> {
  const log = createLog(config.log, options.logTo);
  const watch = await startWatch(config.ops);
  life.push(() => watch.stop());
  const secrets = config.auth.secrets ?? [await keepSecret(config.dataFolder)];
  const { uri, failed } = await findDatabase(config, log, life);
  const door = createDoor(config.http);
  life.push(() => door.close());
  let generatedPassword: string | null = null;
  const onPassword = (password: string): void => {
    generatedPassword = password;
    options.onPassword?.(password);
  };
  const [refusing, refuse] = later<{ url: string; isWaiting: boolean }>();
  const onAway = (error: unknown): void => {
    log.warn({ err: toApiError(error).cause }, 'the database is away: requests are refused until it answers');
    refuse(door.refuse().then((url) => ({ url, isWaiting: true })));
  };
  const now = options.now ?? Date.now;
  const parts = { ...options, config, log, now, secrets, uri, door, watch, onPassword, onAway };
  const opened = open(parts, life).then(async (app) => {
    const url = await door.open(app);
    log.info({ url }, 'listening');
    return url;
  });
  life.during(opened);
  const answering = opened.then((url) => ({ url, isWaiting: false }));
  const first = await Promise.race([answering, refusing]);
  const broken = new Promise((resolve) => opened.catch(resolve));
  return { ...first, opsUrl: watch.url, generatedPassword, failed: Promise.race([failed, broken]) };
}

/** Everything that needs the database; resolves with what answers requests. */
async function open(parts: Parts, life: Life): Promise<RequestListener> {
  const { config, log, now, door, watch } = parts;
  const passwords = await createPasswords();
  const database = await findPrepared(parts, passwords, life.ending);
  life.push(() => database.client.close());
  const expiry = startExpiry({ database, log: log.child({ room: 'expiry' }), now });
  life.push(() => expiry.stop());
  let isLive = (): boolean => false;
  const caches = createCaches(database, () => isLive());
  const { sessionLifetimeMs: lifetimeMs } = config.auth;
  const identity = createIdentity({ database, secrets: parts.secrets, lifetimeMs, now, accounts: caches.accounts });
  const audit = createAudit({ database, log: log.child({ room: 'audit' }), now });
  life.push(() => audit.stop());
  const arrivals = createArrivals();
  const opened = { ...parts, database, caches, arrivals };
  const app = createApi({ ...opened, identity, passwords, audit });
  const hub = createHub(door.server, {
    identify: identity.identify,
    corsOrigins: config.http.corsOrigins,
    findObjects: (scope, keys) => findObjectIds(database, scope, keys),
    openHistory: createHistory(database.client),
    findReaders: caches.readers.find,
    log: log.child({ room: 'live' }),
    now,
  });
  const watcher = await startNews({ ...opened, hub }, life);
  isLive = watcher.isLive;
  watch.opened({
    ping: () => database.db.command({ ping: 1 }),
    isLive,
    sockets: door.sockets,
    pool: () => poolOf(database.client),
    watcher: watcher.stats,
  });
  // First of all, and in this order, though sockets end before what they hear does.
  life.push(
    () => hub.stop(),
    () => arrivals.stop(),
    () => door.close(),
    () => watch.drain(),
  );
  return app;
}

/** The operator's MongoDB, or one of our own. */
async function findDatabase(
  config: Config,
  log: Logger,
  life: Life,
): Promise<{ uri: string; failed: Promise<string> }> {
  if (config.mongodbUri !== null) return { uri: config.mongodbUri, failed: new Promise(() => undefined) };
  const embedded = await startEmbedded({
    dataFolder: config.dataFolder,
    mongodBinary: config.mongodBinary,
    searchPath: config.searchPath,
    cacheFolder: config.cacheFolder,
    log: log.child({ room: 'embedded' }),
  });
  life.push(() => embedded.stop());
  return { uri: embedded.uri, failed: embedded.whenExited };
}

/** The database, tried for until it is there. */
function findPrepared(parts: Parts, passwords: Passwords, signal: AbortSignal): Promise<Database> {
  const { login, password } = parts.config.admin;
  const chosen = password ?? generatePassword();
  const onMade = (): void => {
    if (password === null) parts.onPassword?.(chosen);
  };
  const firstUser = { login, passwordHash: () => passwords.hash(chosen), onMade };
  return whenThere(() => openDatabase(parts.uri, firstUser, parts.now()), { signal, onAway: parts.onAway });
}

interface Opened extends Parts {
  readonly database: Database;
  readonly caches: Caches;
  readonly arrivals: Arrivals;
}

function createApi(parts: Opened & { identity: Identity; passwords: Passwords; audit: Audit }) {
  const { config, database, caches, arrivals, identity, passwords, audit, now } = parts;
  const { metrics } = parts.watch;
  const log = parts.log.child({ room: 'http' });
  const { tokenLifetimeMs } = config.auth;
  const inBackground = (work: Promise<unknown>): void => {
    work.catch((error) => log.error({ err: error }, 'work after an answer failed'));
  };
  const written = (store: string, id: string): void => caches.forget({ store, id });
  const common = { database, passwords, tokenLifetimeMs, now, written, ...identity };
  return createApp({
    ...common,
    accounts: caches.accounts,
    models: caches.models,
    findStore: caches.stores.find,
    rules: createRules({ ...common, inBackground }),
    ingest: metrics.counted('http', createIngest(database, createStampClock(now))),
    attempts: createAttempts(database.client),
    arrivals,
    audit,
    requestEnded: metrics.requestEnded,
    trustProxy: config.http.trustProxy,
    corsOrigins: config.http.corsOrigins,
    log,
  });
}

/** The change stream: what it tells is forgotten where it was known, then told to sockets. */
async function startNews(parts: Opened & { hub: Hub }, life: Life): Promise<Watcher> {
  const { hub, caches, arrivals, watch, now } = parts;
  const client = createWatcherClient(parts.uri);
  life.push(() => client.close());
  const log = parts.log.child({ room: 'watcher' });
  const onChange = async (change: Change): Promise<void> => {
    caches.apply(change);
    await hub.apply(change);
    const guardian = guardianOf(change);
    const readers = guardian === null ? null : await caches.readers.find(guardian);
    const events = toEvents(change, readers);
    hub.tell(events, change.position);
    arrivals.apply(change);
    watch.metrics.told(change, events);
    parts.onChange?.(change);
  };
  const onGap = (): void => {
    caches.forgetAll();
    arrivals.wakeAll();
    hub.disconnectAll();
  };
  const start = () => startWatcher({ client, log, now, onStart: hub.begin, onChange, onGap });
  const watcher = await whenThere(() => translated(start, null), { signal: life.ending, onAway: parts.onAway });
  life.push(() => watcher.stop());
  return watcher;
}
