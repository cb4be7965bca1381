/** The composition root: every part of the service is made here, and nowhere else; its ending is the start backwards. */
import type { DestinationStream, Logger } from 'pino';
import { createAttempts } from './auth/attempts.js';
import { createIdentity, type Identity } from './auth/identity.js';
import { createPasswords, generatePassword, type Passwords } from './auth/password.js';
import { keepSecret } from './auth/secret.js';
import type { Config } from './config.js';
import { type Audit, createAudit } from './db/audit.js';
import { type Caches, createCaches } from './db/caches.js';
import { startWatcher } from './db/changes.js';
import { connectDatabase, createWatcherClient, type Database } from './db/connect.js';
import { startEmbedded } from './db/embedded.js';
import { findObjectIds } from './db/entities.js';
import { startExpiry } from './db/expiry.js';
import { settleMoves } from './db/groups.js';
import { createHistory } from './db/history.js';
import { createIngest } from './db/ingest.js';
import { prepareInstallation } from './db/installation.js';
import { createApp } from './http/app.js';
import { createRules } from './http/rules.js';
import { createHttpServer, endConnections, listen } from './http/server.js';
import { toEvents } from './live/events.js';
import { createHub, type Hub } from './live/hub.js';
import { createLog } from './log.js';
import type { Change } from './model/change.js';
import { LIMITS } from './model/limits.js';
import { createStampClock } from './model/packet.js';

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
  /** Given once: when this start made the first administrator with a password of its own. */
  readonly generatedPassword: string | null;
  /** Resolves with the reason when the service cannot go on by itself. */
  readonly failed: Promise<string>;
  stop(): Promise<void>;
}

type Ending = () => unknown;

/** Starts every part, listening last. A start that fails ends what it had begun; `stop` can be called again. */
export async function startService(config: Config, options: ServiceOptions = {}): Promise<Service> {
  const endings: Ending[] = [];
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= runBackwards(endings);
    return stopped;
  };
  try {
    return { ...(await start(config, options, endings)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function runBackwards(endings: Ending[]): Promise<void> {
  for (let ending = endings.pop(); ending !== undefined; ending = endings.pop()) await ending();
}

async function start(config: Config, options: ServiceOptions, endings: Ending[]): Promise<Omit<Service, 'stop'>> {
  const now = options.now ?? Date.now;
  const log = createLog(config.log, options.logTo);
  const secrets = config.auth.secrets ?? [await keepSecret(config.dataFolder)];
  const { uri, failed } = await findDatabase(config, log, endings);
  const database = await connectDatabase(uri);
  endings.push(() => database.client.close());

  const passwords = await createPasswords();
  const generatedPassword = await prepareFirstUser({ config, database, passwords, now });
  if (generatedPassword !== null) options.onPassword?.(generatedPassword);
  await settleMoves(database, now() - LIMITS.moveRecheckMs);
  const expiry = startExpiry({ database, log: log.child({ room: 'expiry' }), now });
  endings.push(() => expiry.stop());
  let isLive = (): boolean => false;
  const caches = createCaches(database, () => isLive());
  const { sessionLifetimeMs: lifetimeMs } = config.auth;
  const identity = createIdentity({ database, secrets, lifetimeMs, now, accounts: caches.accounts });
  const audit = createAudit({ database, log: log.child({ room: 'audit' }), now });
  endings.push(() => audit.stop());
  const app = createDoor({ config, database, caches, identity, passwords, audit, log, now });
  const server = createHttpServer(app);
  const hub = createHub(server, {
    identify: identity.identify,
    corsOrigins: config.http.corsOrigins,
    findObjects: (scope, keys) => findObjectIds(database, scope, keys),
    openHistory: createHistory(database.client),
    findReaders: caches.readers.find,
    log: log.child({ room: 'live' }),
    now,
  });
  isLive = await startNews({ uri, hub, caches, log, now, onChange: options.onChange }, endings);
  const url = await listen(server, config.http);
  endings.push(
    () => hub.stop(),
    () => endConnections(server),
  );
  log.info({ url }, 'listening');
  return { url, generatedPassword, failed };
}

/** The operator's MongoDB, or one of our own. */
async function findDatabase(
  config: Config,
  log: Logger,
  endings: Ending[],
): Promise<{ uri: string; failed: Promise<string> }> {
  if (config.mongodbUri !== null) return { uri: config.mongodbUri, failed: new Promise(() => undefined) };
  const embedded = await startEmbedded({
    dataFolder: config.dataFolder,
    mongodBinary: config.mongodBinary,
    searchPath: config.searchPath,
    cacheFolder: config.cacheFolder,
    log: log.child({ room: 'embedded' }),
  });
  endings.push(() => embedded.stop());
  return { uri: embedded.uri, failed: embedded.whenExited };
}

async function prepareFirstUser(parts: {
  config: Config;
  database: Database;
  passwords: Passwords;
  now: () => number;
}): Promise<string | null> {
  const { login, password } = parts.config.admin;
  const chosen = password ?? generatePassword();
  const passwordHash = () => parts.passwords.hash(chosen);
  const made = await prepareInstallation(parts.database, { login, passwordHash }, parts.now());
  return made && password === null ? chosen : null;
}

function createDoor(parts: {
  config: Config;
  database: Database;
  caches: Caches;
  identity: Identity;
  passwords: Passwords;
  audit: Audit;
  log: Logger;
  now: () => number;
}) {
  const { config, database, caches, identity, passwords, audit, now } = parts;
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
    ingest: createIngest(database, createStampClock(now)),
    attempts: createAttempts(database.client),
    audit,
    trustProxy: config.http.trustProxy,
    corsOrigins: config.http.corsOrigins,
    log,
  });
}

const isNewPacket = ({ store, kind }: Change): boolean => store === 'packets' && kind === 'created';

/** The change stream: what it tells is forgotten where it was known, then told to sockets. */
async function startNews(
  parts: {
    uri: string;
    hub: Hub;
    caches: Caches;
    log: Logger;
    now: () => number;
    onChange: ServiceOptions['onChange'];
  },
  endings: Ending[],
): Promise<() => boolean> {
  const { hub, caches } = parts;
  const client = createWatcherClient(parts.uri);
  endings.push(() => client.close());
  const watcher = await startWatcher({
    client,
    log: parts.log.child({ room: 'watcher' }),
    now: parts.now,
    onStart: hub.begin,
    async onChange(change) {
      caches.apply(change);
      await hub.apply(change);
      const packetReaders = isNewPacket(change) ? await caches.readers.find(String(change.after?._oid)) : null;
      hub.tell(toEvents(change, packetReaders), change.position);
      parts.onChange?.(change);
    },
    onGap() {
      caches.forgetAll();
      hub.disconnectAll();
    },
  });
  endings.push(() => watcher.stop());
  return watcher.isLive;
}
