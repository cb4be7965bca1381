/** The composition root: every part that needs the database is made here, and nowhere else. */
import type { Express } from 'express';
import type { Logger } from 'pino';
import { type Attempts, createAttempts } from './auth/attempts.js';
import { createDeviceSecrets } from './auth/device-secret.js';
import { createIdentity, type Identity } from './auth/identity.js';
import { createPasswords, generatePassword, type Passwords } from './auth/password.js';
import type { Config } from './config.js';
import { type Audit, createAudit } from './db/audit.js';
import { type Caches, createCaches } from './db/caches.js';
import { createChangeConsumers } from './db/change-consumers.js';
import { startWatcher, type Watcher } from './db/changes.js';
import { connectListDatabase, createWatcherClient, type Database } from './db/connect.js';
import { translated } from './db/documents.js';
import { findObjectIds } from './db/entities.js';
import { createHistory } from './db/history.js';
import { createIngest, type Ingest } from './db/ingest.js';
import { findKey } from './db/installation.js';
import { openDatabase } from './db/open.js';
import { tellNameless } from './db/own-ids.js';
import { findPacketUpgrade } from './db/packet-repeats.js';
import { poolOf } from './db/pool.js';
import { startUpkeep } from './db/upkeep.js';
import { createFairness, createSubscriptionQueue } from './fairness/fairness.js';
import { createGateway, type Gateway } from './gateway/gateway.js';
import { createDigest } from './gateway/packet-id.js';
import { createClientFacts } from './http/address.js';
import { createApp } from './http/app.js';
import { type Arrivals, createArrivals } from './http/arrivals.js';
import type { Door } from './http/door.js';
import { createRules } from './http/rules.js';
import { createHub, type Hub } from './live/hub.js';
import { createSockets } from './live/sockets.js';
import type { Change } from './model/change.js';
import { createStampClock } from './model/packet.js';
import { type Life, whenThere } from './ops/life.js';
import type { Watch } from './ops/watch.js';

/** What there is before there is a database. */
export interface Parts {
  readonly config: Config;
  readonly log: Logger;
  readonly now: () => number;
  readonly secrets: readonly string[];
  readonly uri: string;
  readonly door: Door;
  readonly watch: Watch;
  readonly onChange?: ((change: Change) => void) | undefined;
  readonly onPassword: (password: string) => void;
  /** Told each time that the database is not there yet. */
  readonly onAway: (error: unknown) => void;
}

export interface Assembled {
  /** What answers requests. */
  readonly app: Express;
  /** Where devices connect; null for nowhere. */
  readonly mqttUrl: string | null;
  /** What those who watch over the service are told of, as soon as requests are answered. */
  readonly vitals: Parameters<Watch['opened']>[0];
}

/** Everything that needs the database. */
export async function assemble(parts: Parts, life: Life): Promise<Assembled> {
  const { config, log, now, door, watch } = parts;
  const passwords = await createPasswords();
  const database = await findPrepared(parts, passwords, life.ending);
  const listDatabase = await findListDatabase(parts, life.ending);
  for (const { client } of [database, listDatabase]) life.push(() => client.close());
  const { retentionDays } = config;
  const upkeep = startUpkeep({ database, retentionDays, log: (room) => log.child({ room }), now });
  life.push(() => upkeep.stop());
  let isLive = (): boolean => false;
  const caches = createCaches(database, () => isLive());
  const { sessionLifetimeMs: lifetimeMs } = config.auth;
  const identity = createIdentity({ database, secrets: parts.secrets, lifetimeMs, now, accounts: caches.accounts });
  const audit = createAudit({ database, log: log.child({ room: 'audit' }), now });
  life.push(() => audit.stop());
  const facts = createClientFacts(config.http.trustProxy);
  const hub = createFeed(parts, { database, caches, identity });
  const arrivals = createArrivals();
  const entrance = await createEntrance({ ...parts, database, caches, identity, audit });
  const { gateway } = entrance;
  const opened = { ...parts, database, caches, arrivals, hub, gateway };
  const app = createApi({ ...opened, ...entrance, ...facts, listDatabase, identity, passwords, audit });
  const { listen } = hub;
  const open = { ...facts, listen, identify: identity.identify, corsOrigins: config.http.corsOrigins };
  const sockets = createSockets(door.server, { ...open, log: log.child({ room: 'live' }) });
  const watcher = await startNews(opened, life);
  isLive = watcher.isLive;
  const vitals = {
    ping: () => database.db.command({ ping: 1 }),
    isLive,
    sockets: () => hub.stats().listeners,
    pool: () => poolOf(database.client, listDatabase.client),
    watcher: watcher.stats,
  };
  life.push(() => gateway.stop());
  const mqttUrl = await gateway.start();
  // First of all, and in this order, though listeners end before what they hear does.
  life.push(
    () => sockets.stop(),
    () => hub.stop(),
    () => arrivals.stop(),
    () => sockets.letGo(),
    () => door.close(),
    () => watch.drain(),
  );
  return { app, mqttUrl, vitals };
}

const findListDatabase = ({ uri, onAway }: Parts, signal: AbortSignal): Promise<Database> =>
  whenThere(() => connectListDatabase(uri), { signal, onAway });

/** The database, tried for until it is there. */
function findPrepared(parts: Parts, passwords: Passwords, signal: AbortSignal): Promise<Database> {
  const { login, password } = parts.config.admin;
  const chosen = password ?? generatePassword();
  const onMade = (): void => {
    if (password === null) parts.onPassword(chosen);
  };
  const firstUser = { login, passwordHash: () => passwords.hash(chosen), onMade };
  return whenThere(() => openDatabase(parts.uri, firstUser, parts.now()), { signal, onAway: parts.onAway });
}

interface Opened extends Parts {
  readonly database: Database;
  readonly caches: Caches;
  readonly arrivals: Arrivals;
  readonly hub: Hub;
  readonly gateway: Gateway;
}

function createFeed(
  { config, log, now }: Parts,
  { database, caches, identity }: { database: Database; caches: Caches; identity: Identity },
): Hub {
  const subscriptions = createSubscriptionQueue();
  return createHub({
    identify: identity.identify,
    findObjects: (scope, keys) => subscriptions.run(scope.userId, () => findObjectIds(database, scope, keys)),
    openHistory: createHistory(database.client),
    ...{ findReaders: caches.readers.find, prepareReaders: caches.readers.prepare },
    most: config.live,
    log: log.child({ room: 'live' }),
    now,
  });
}

/** What the API's door and the devices' share, so that packets of both go into the database together; and the devices'. */
interface Entrance {
  readonly ingest: Ingest;
  readonly attempts: Attempts;
  readonly sealDevice: (password: string) => string;
  readonly gateway: Gateway;
}

async function createEntrance(
  parts: Parts & { database: Database; caches: Caches; identity: Identity; audit: Audit },
): Promise<Entrance> {
  const { database, audit, now, config, watch } = parts;
  // Who cannot come in by its own id; nothing waits for it.
  void tellNameless({ database, audit, log: parts.log });
  const upgradedMs = await findPacketUpgrade(database);
  const ingest = createIngest(
    database,
    createStampClock(now, () => performance.now()),
    upgradedMs,
  );
  const deviceSecrets = createDeviceSecrets(await findKey(database, 'device key'));
  const digest = createDigest(await findKey(database, 'packet key'));
  const attempts = createAttempts(database.client);
  const gateway = createGateway({
    ...{ database, audit, now, deviceSecrets, identify: parts.identity.identify },
    address: config.mqtt,
    broker: config.broker,
    models: parts.caches.models,
    ...{ digest, upgradedMs },
    ingest: watch.metrics.counted('mqtt', ingest),
    log: parts.log.child({ room: 'gateway' }),
  });
  return { ingest, attempts, sealDevice: deviceSecrets.seal, gateway };
}

interface ApiParts extends Opened, Entrance {
  readonly listDatabase: Database;
  readonly identity: Identity;
  readonly passwords: Passwords;
  readonly audit: Audit;
  readonly addressOf: ReturnType<typeof createClientFacts>['addressOf'];
}

function createApi(parts: ApiParts) {
  const { config, database, caches, arrivals, identity, passwords, audit, hub, addressOf, now } = parts;
  const { metrics, load } = parts.watch;
  const log = parts.log.child({ room: 'http' });
  const { tokenLifetimeMs } = config.auth;
  const inBackground = (work: Promise<unknown>): void => {
    work.catch((error) => log.error({ err: error }, 'work after an answer failed'));
  };
  const written = (store: string, id: string): void => caches.forget({ store, id });
  const findStore = caches.stores.find;
  const common = { database, passwords, tokenLifetimeMs, now, written, findStore, ...identity };
  return createApp({
    ...{ ...common, ...createFairness(), listDatabase: parts.listDatabase },
    accounts: caches.accounts,
    models: caches.models,
    rules: createRules({ ...common, inBackground, sealDevice: parts.sealDevice }),
    ingest: metrics.counted('http', parts.ingest),
    attempts: parts.attempts,
    arrivals,
    audit,
    requestEnded: metrics.requestEnded,
    ...{ isOverloaded: load.isOverloaded, charge: load.charge },
    listen: hub.listen,
    addressOf,
    trustProxy: config.http.trustProxy,
    corsOrigins: config.http.corsOrigins,
    log,
    // Names, numbers and patterns of ours: there is nothing to look through for secrets.
    requestLog: log.child({}, { redact: [] }),
  });
}

/** The change stream: what it tells is forgotten where it was known, then told to sockets. */
async function startNews(parts: Opened, life: Life): Promise<Watcher> {
  const { hub, gateway, caches, arrivals, watch, now } = parts;
  const client = createWatcherClient(parts.uri);
  life.push(() => client.close());
  const log = parts.log.child({ room: 'watcher' });
  const tell = async (change: Change) => watch.metrics.told(change, await hub.tell(change));
  const consume = createChangeConsumers([caches.apply, tell, arrivals.apply, gateway.apply]);
  const onChange = async (change: Change): Promise<void> => {
    await consume(change);
    parts.onChange?.(change);
  };
  const onGap = (): void => {
    caches.forgetAll();
    arrivals.wakeAll();
    gateway.applyAny();
  };
  const start = () => startWatcher({ client, log, now, onStart: hub.begin, onBatch: hub.prepare, onChange, onGap });
  const watcher = await whenThere(() => translated(start, null), { signal: life.ending, onAway: parts.onAway });
  life.push(() => watcher.stop());
  return watcher;
}
