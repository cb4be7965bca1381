/** The composition root: creates every component that needs the database. Nothing else creates components. */
import type { Express } from 'express';
import type { Logger } from 'pino';
import { createUseNotes } from './accounts/accounts.js';
import { type Attempts, createAttempts } from './accounts/attempts.js';
import { type Audit, createAudit } from './accounts/audit.js';
import { createDamageReporter } from './accounts/damage-audit.js';
import { createDevicePasswords } from './accounts/device-passwords.js';
import { createFormulaReporter } from './accounts/formula-audit.js';
import { createIdentity, type Identity } from './accounts/identity.js';
import { createPasswords, generatePassword, type Passwords } from './accounts/passwords.js';
import { createChangeRecorder } from './accounts/request-audit.js';
import { findKey, type KeyName } from './accounts/seed.js';
import { type Caches, createCaches } from './caches.js';
import { noteReceipt } from './commands/network-store.js';
import { type CommandWaiters, createCommandWaiters } from './commands/waiters.js';
import type { Config } from './config.js';
import type { Change } from './core/change.js';
import { LIMITS } from './core/limits.js';
import { createDigest } from './devices/dedup-id.js';
import { createGateway, type Gateway } from './devices/gateway.js';
import type { MqttAddress } from './devices/mqtt/listener.js';
import { createArrivals } from './devices/presence/arrivals.js';
import { type AnswerCommands, createAnswerCommands } from './devices/sources/answer-commands.js';
import { createReceive, type Receive } from './devices/sources/entrance.js';
import { createRefusedPayloads, type RefusedPayloads } from './devices/sources/refused-payloads.js';
import { createTargets } from './devices/sources/targets.js';
import { createRefusedReporter, createUnknownDeviceReporter } from './devices/sources/unknown-devices.js';
import { createDownlinks, type Downlinks } from './downlinks/downlinks.js';
import { createApp } from './express.js';
import { createGeocoder, type Geocoder } from './geocoder/geocoder.js';
import { createHooks } from './hooks.js';
import { type Jobs, startJobs } from './jobs.js';
import { createFeed, type Feed, type FeedOptions } from './live/feed.js';
import { createFinders } from './live/finders.js';
import { createSocketServer } from './live/socketio.js';
import { openDatabase } from './open-database.js';
import { createIngest, type Ingest } from './packets/ingest.js';
import { createInsertOrder } from './packets/insert-order.js';
import { createStampClock } from './packets/packet.js';
import { createRefusedPackets, type RefusedPackets } from './packets/refused-packets.js';
import { createWrongClocks } from './packets/wrong-clocks.js';
import { clock } from './platform/clock.js';
import { createCheckTurns, createFairness, createSubscriptionQueue } from './platform/fairness.js';
import { createClientFacts } from './platform/http/client-ip.js';
import type { Entry } from './platform/http/server/entry.js';
import { createHistory } from './platform/mongo/changes/history.js';
import type { Watcher } from './platform/mongo/changes/watcher.js';
import { connectListDatabase, type Database, type ServiceClock } from './platform/mongo/driver/client.js';
import { poolStateOf } from './platform/mongo/driver/pool-stats.js';
import { type Lifecycle, retryUntilAvailable } from './platform/ops/lifecycle.js';
import type { OpsServer } from './platform/ops/server.js';
import { createRefusalReport } from './platform/refused-connections.js';
import { createSettings, type Settings } from './settings/settings-store.js';
import { startWatching } from './watching.js';
import { createResolve } from './webhooks/names.js';
import { createSender } from './webhooks/request.js';
import { createWorkers, type Workers } from './workers.js';

/** What exists before the database is available. */
export interface ContextDeps {
  readonly config: Config;
  readonly log: Logger;
  readonly now: () => number;
  readonly secrets: readonly string[];
  readonly uri: string;
  readonly entry: Entry;
  readonly ops: OpsServer;
  readonly onChange?: ((change: Change) => void) | undefined;
  readonly onPassword: (password: string) => void;
  /** Called for each failed attempt to reach the database. */
  readonly onUnavailable: (error: unknown) => void;
}

export interface Context {
  /** Answers the requests. */
  readonly app: Express;
  /** The address for devices; null for none. */
  readonly mqttUrl: string | null;
  /** What the ops server reports once the service accepts requests. */
  readonly healthChecks: Parameters<OpsServer['opened']>[0];
}

/** Creates and connects every component. Waits for the database while it is unavailable. */
export async function createContext(deps: ContextDeps, lifecycle: Lifecycle): Promise<Context> {
  const { config, log, now, entry, ops, secrets } = deps;
  const { ending } = lifecycle;
  const passwords = await createPasswords();
  const prepared = await findPrepared(deps, passwords, ending);
  const preparedForLists = await findListDatabase(deps, ending);
  for (const { client } of [prepared, preparedForLists]) lifecycle.onShutdown(() => client.close());
  let watcher: Watcher | null = null;
  const isLive = (): boolean => watcher?.isLive() ?? false;
  const deliveredToMs = (): number => watcher?.deliveredToMs() ?? 0;
  const deliveredTo = (): string | null => watcher?.position() ?? null;
  const audit = createAudit({ database: prepared, log: log.child({ module: 'audit' }), now });
  lifecycle.onShutdown(() => audit.stop());
  const onDamaged = createDamageReporter({ audit, log, now, onRead: ops.metrics.packing.damagedRead });
  const database = { ...prepared, onDamaged };
  const listDatabase = { ...preparedForLists, onDamaged };
  const onFailedFormula = createFormulaReporter({ audit, log, now });
  const caches = createCaches(database, { isLive, deliveredTo, checkTurns: createCheckTurns(), onFailedFormula });
  const { sessionLifetimeMs: lifetimeMs } = config.auth;
  const { basePath } = config.http;
  const identity = createIdentity({ database, secrets, lifetimeMs, basePath, now, accounts: caches.accounts });
  const { retentionDays, packAfterMs } = config;
  const aged = { retentionDays, packAfterMs, metrics: ops.metrics.packing };
  const { accounts } = caches;
  const jobs = startJobs({ database, audit, accounts, config, ...aged, log: (module) => log.child({ module }), now });
  lifecycle.onShutdown(() => jobs.stop());
  const facts = createClientFacts(config.http.trustProxy);
  const feed = createLiveFeed(deps, { database, caches, identity }, { isLive, deliveredTo, deliveredToMs });
  const commandWaiters = createCommandWaiters();
  const downlinks = createOwnDownlinks(deps, database);
  const watched = { database, caches, identity, audit, isLive };
  const devices = await createDeviceServices({ ...deps, ...watched, ending, noteCommandAddress: downlinks.note });
  const { gateway } = devices;
  const { refusedPackets, refusedPayloads, answerCommands } = devices;
  for (const one of [refusedPackets, refusedPayloads, answerCommands]) lifecycle.onShutdown(() => one.stop());
  const onOutcome = ops.metrics.webhookEnded;
  const workers = createWorkers({ ...deps, database, caches, audit, onOutcome, deliveredToMs });
  const settings = createSettings({ database, signal: ending, log: log.child({ module: 'settings' }) });
  const shared = { ...deps, ...jobs, database, caches, settings };
  const opened = { ...shared, commandWaiters, feed, gateway, downlinks, workers, ending };
  const app = createApi({ ...opened, ...devices, ...facts, listDatabase, identity, passwords, audit });
  const { listen } = feed;
  const open = { ...facts, listen, identify: identity.identify, corsOrigins: config.http.corsOrigins };
  const sockets = createSocketServer(entry.server, { ...open, log: log.child({ module: 'live' }) });
  watcher = await startWatching(opened, lifecycle);
  const healthChecks = toHealthChecks({ ...opened, listDatabase, isLive, watcher });
  lifecycle.onShutdown(() => gateway.stop());
  const mqttUrl = await retryUntilAvailable(gateway.start, { signal: ending, onUnavailable: deps.onUnavailable });
  // Runs from the last to the first: requests and subscribers end before the components that they use.
  lifecycle.onShutdown(
    () => sockets.stop(),
    () => feed.stop(),
    () => commandWaiters.stop(),
    () => sockets.disconnectAll(),
    () => entry.close(),
    () => ops.drain(),
  );
  return { app, mqttUrl, healthChecks };
}

function toHealthChecks({
  database,
  listDatabase,
  isLive,
  feed,
  watcher,
  workers,
}: Pick<Opened, 'database' | 'feed' | 'workers'> & {
  readonly listDatabase: Database;
  readonly isLive: () => boolean;
  readonly watcher: Watcher;
}): Context['healthChecks'] {
  return {
    ping: () => database.db.command({ ping: 1 }),
    isLive,
    sockets: () => feed.stats().listeners,
    pool: () => poolStateOf(database.client, listDatabase.client),
    watcher: watcher.stats,
    workers: workers.stats,
  };
}

const clockOf = ({ config, now }: ContextDeps): ServiceClock => ({ now, aheadMs: config.packetAheadMs });

const findListDatabase = (deps: ContextDeps, signal: AbortSignal): Promise<Database> =>
  retryUntilAvailable(() => connectListDatabase(deps.uri, clockOf(deps)), {
    signal,
    onUnavailable: deps.onUnavailable,
  });

/** Opens the database; retries until it is available. */
function findPrepared(deps: ContextDeps, passwords: Passwords, signal: AbortSignal): Promise<Database> {
  const { login, password } = deps.config.admin;
  const chosen = password ?? generatePassword();
  const onCreated = (): void => {
    if (password === null) deps.onPassword(chosen);
  };
  const firstUser = { login, passwordHash: () => passwords.hash(chosen), onCreated };
  const { onUnavailable } = deps;
  return retryUntilAvailable(() => openDatabase(deps.uri, firstUser, clockOf(deps)), { signal, onUnavailable });
}

interface Opened extends ContextDeps {
  readonly database: Database;
  readonly caches: Caches;
  readonly commandWaiters: CommandWaiters;
  readonly feed: Feed;
  readonly gateway: Gateway;
  readonly downlinks: Downlinks;
  readonly workers: Workers;
  readonly settings: Settings;
  readonly ending: AbortSignal;
  readonly requestRemoval: Jobs['requestRemoval'];
}

function createLiveFeed(
  { config, log, now }: ContextDeps,
  { database, caches, identity }: { database: Database; caches: Caches; identity: Identity },
  stream: Pick<FeedOptions, 'isLive' | 'deliveredTo' | 'deliveredToMs'>,
): Feed {
  return createFeed({
    identify: identity.identify,
    wasAt: caches.accounts.wasAt,
    ...createFinders(database, createSubscriptionQueue()),
    openHistory: createHistory(database.client),
    findAudience: caches.audiences.find,
    prepareAudiences: caches.audiences.prepare,
    ...stream,
    maxSubscribers: config.live,
    log: log.child({ module: 'live' }),
    now,
  });
}

/** The intake of packets, which HTTP and MQTT share so that their packets are written together, and the MQTT gateway. */
interface DeviceServices {
  readonly stampUs: () => number;
  readonly ingest: Ingest;
  readonly refusedPackets: RefusedPackets;
  readonly attempts: Attempts;
  readonly hashDevicePassword: (password: string) => string;
  readonly gateway: Gateway;
  readonly refusedPayloads: RefusedPayloads;
  readonly answerCommands: AnswerCommands;
  readonly receiveFromSource: Receive;
}

/** Where devices connect; null without MQTT. */
function findMqttAddress({ config, ops }: Pick<ContextDeps, 'config' | 'ops'>, log: Logger): MqttAddress | null {
  const { mqtt, connectionsPerAddress } = config;
  const report = createRefusalReport({ onRefused: ops.metrics.connectionRefused, log });
  return mqtt && { ...mqtt, connectionsPerAddress, onConnectionRefused: report('mqtt') };
}

interface DeviceServiceDeps extends ContextDeps {
  readonly database: Database;
  readonly caches: Caches;
  readonly identity: Identity;
  readonly audit: Audit;
  readonly isLive: () => boolean;
  readonly noteCommandAddress: Downlinks['note'];
  readonly ending: AbortSignal;
}

async function createDeviceServices(deps: DeviceServiceDeps): Promise<DeviceServices> {
  const { database, audit, now, config, ops } = deps;
  const stampUs = createStampClock(now, () => clock.steadyMs());
  const waiting = { signal: deps.ending, onUnavailable: deps.onUnavailable };
  const find = (name: KeyName) => retryUntilAvailable(() => findKey(database, name), waiting);
  const devicePasswords = createDevicePasswords(await find('device key'));
  const digest = createDigest(await find('packet key'));
  const mqttLog = deps.log.child({ module: 'mqtt' });
  const arrivals = createArrivals({
    database,
    ingest: createIngest(database, stampUs, config.packAfterMs),
    digest,
    isLive: deps.isLive,
    log: mqttLog,
  });
  const wrongClocks = createWrongClocks({ database, log: mqttLog });
  const ingest = wrongClocks.noting(arrivals.ingest);
  const attempts = createAttempts(database.client);
  const refusedPackets = createRefusedPackets({ database, log: deps.log.child({ module: 'packets' }), now });
  const gateway = createGateway({
    database,
    audit,
    now,
    devicePasswords,
    identify: deps.identity.identify,
    address: findMqttAddress(deps, mqttLog),
    broker: config.broker,
    models: deps.caches.models,
    digest,
    arrivals,
    wrongClocks,
    ingest: ops.metrics.counted('mqtt', ingest),
    parsing: createInsertOrder(),
    onRefused: ops.metrics.messageRefused,
    refusedPackets,
    log: mqttLog,
  });
  return {
    stampUs,
    ingest,
    refusedPackets,
    attempts,
    hashDevicePassword: devicePasswords.hash,
    gateway,
    ...createSourceServices(deps, { ingest, digest, refusedPackets }),
  };
}

/** What sources share with the gateway. */
interface Shared extends Pick<DeviceServices, 'ingest' | 'refusedPackets'> {
  readonly digest: ReturnType<typeof createDigest>;
}

function createSourceServices(
  { database, audit, now, caches, ops, noteCommandAddress, log }: DeviceServiceDeps,
  { ingest, digest, refusedPackets }: Shared,
): Pick<DeviceServices, 'refusedPayloads' | 'answerCommands' | 'receiveFromSource'> {
  const sourceLog = log.child({ module: 'sources' });
  const refusedPayloads = createRefusedPayloads({ database, log: sourceLog, now });
  const answerCommands = createAnswerCommands({ database, log: sourceLog, now });
  const receiveFromSource = createReceive({
    targets: createTargets({ database, now }),
    models: caches.models,
    ingest: ops.metrics.counted('http', ingest),
    digest,
    refusedPackets,
    refusedPayloads,
    reportUnknownDevice: createUnknownDeviceReporter({ audit, log: sourceLog, now }),
    reportRefused: createRefusedReporter({ audit, now }),
    noteCommandAddress,
    noteReceipt: (passedOn, receipt) => noteReceipt(database, passedOn, receipt, now()),
    takeCommands: answerCommands.take,
    noteUse: createUseNotes(database, 'sources', now),
    onRefused: ops.metrics.messageRefused,
    now,
  });
  return { refusedPayloads, answerCommands, receiveFromSource };
}

function createOwnGeocoder({ config, log }: ContextDeps, ending: AbortSignal): Geocoder | null {
  if (config.geocoder === null) return null;
  const sender = createSender(config.webhookNetworks, createResolve(), () => ({
    answerMs: LIMITS.geocoderAnswerMs,
    answerBytes: LIMITS.geocoderAnswerBytes,
    shownBytes: LIMITS.geocoderAnswerBytes,
  }));
  return createGeocoder(config.geocoder, { sender, log: log.child({ module: 'geocoder' }), ending });
}

function createOwnDownlinks({ config, log, now }: ContextDeps, database: Database): Downlinks {
  const sender = createSender(config.webhookNetworks, createResolve());
  return createDownlinks({ database, sender, log: log.child({ module: 'sources' }), now });
}

interface ApiDeps extends Opened, DeviceServices {
  readonly listDatabase: Database;
  readonly identity: Identity;
  readonly passwords: Passwords;
  readonly audit: Audit;
  readonly addressOf: ReturnType<typeof createClientFacts>['addressOf'];
}

function createApi(deps: ApiDeps) {
  const { config, database, caches, commandWaiters, identity, passwords, audit, feed, addressOf, now } = deps;
  const { metrics, load } = deps.ops;
  const log = deps.log.child({ module: 'http' });
  const { tokenLifetimeMs } = config.auth;
  const inBackground = (work: Promise<unknown>): void => {
    work.catch((error) => log.error({ err: error }, 'work after an answer failed'));
  };
  const invalidate = (store: string, id: string): void => caches.invalidate({ store, id });
  const findStore = caches.stores.find;
  const common = { database, passwords, tokenLifetimeMs, now, invalidate, findStore, ...identity };
  return createApp({
    ...common,
    ...deps.workers.api,
    ...createFairness(),
    listDatabase: deps.listDatabase,
    accounts: caches.accounts,
    models: caches.models,
    hooks: createHooks({ ...common, ...deps.workers.api, inBackground, hashDevicePassword: deps.hashDevicePassword }),
    ingest: metrics.counted('http', deps.ingest),
    stampUs: deps.stampUs,
    refusedPackets: deps.refusedPackets,
    attempts: deps.attempts,
    // A fleet with a wrong key must not lock the logins of the users at its address.
    keyAttempts: createAttempts(database.client, 'source '),
    sources: caches.sources,
    refusedPayloads: deps.refusedPayloads,
    receiveFromSource: deps.receiveFromSource,
    commandWaiters,
    audit,
    recordChange: createChangeRecorder(audit),
    requestEnded: metrics.requestEnded,
    ending: deps.ending,
    requestRemoval: deps.requestRemoval,
    isOverloaded: load.isOverloaded,
    consume: load.consume,
    listen: feed.listen,
    mqtt: config.mqtt,
    map: config.map,
    geocoder: createOwnGeocoder(deps, deps.ending),
    settings: deps.settings,
    addressOf,
    trustProxy: config.http.trustProxy,
    corsOrigins: config.http.corsOrigins,
    basePath: config.http.basePath,
    log,
    // Contains only names, numbers and route patterns: nothing to search for secrets.
    requestLog: log.child({}, { redact: [] }),
  });
}
