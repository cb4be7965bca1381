/** What happens because of changes, besides live events: the engine, and the webhooks that it drives. */
import type { Logger } from 'pino';
import { findScopeObjects } from './accounts/accounts.js';
import { type Audit, NO_REQUEST } from './accounts/audit.js';
import { type Alarms, type AlarmsOptions, createAlarms } from './alarms/alarms.js';
import { createHeldBackReporter } from './alarms/held-back.js';
import type { Caches } from './caches.js';
import type { Config } from './config.js';
import type { Change } from './core/change.js';
import { findObjectIds } from './entities/object-ids.js';
import { type AssertSendsMail, type Channels, createChannels, createMailCheck } from './notifications/channels.js';
import { createNotifier, type Notifier } from './notifications/notifier.js';
import { kindOf } from './notifications/outbox.js';
import { createPushKeys } from './notifications/push-keys.js';
import { createTestLimits, type TestLimits } from './notifications/test-limits.js';
import { createHistory } from './platform/mongo/changes/history.js';
import type { Database } from './platform/mongo/driver/client.js';
import type { WorkerStats } from './platform/ops/worker-metrics.js';
import { createEngine, type Engine, type EngineOptions } from './processing/engine.js';
import { checkReceiver } from './webhooks/addresses.js';
import type { StoredHandler } from './webhooks/handlers.js';
import { createResolve, type Resolve } from './webhooks/names.js';
import { toRangeTexts } from './webhooks/replay.js';
import { createSender } from './webhooks/request.js';
import { createSecret } from './webhooks/signature.js';
import { createWebhooks, type Webhooks, type WebhooksOptions } from './webhooks/webhooks.js';

export interface WorkerParts {
  readonly database: Database;
  readonly caches: Caches;
  readonly audit: Audit;
  readonly deliveredToMs: AlarmsOptions['deliveredToMs'];
  readonly config: Pick<Config, 'webhookNetworks' | 'notifications'>;
  readonly onOutcome: (outcome: string, count: number, ms: number | null, delayMs?: number) => void;
  /** For the simulation: how requests to webhooks are sent instead. */
  readonly createSender?: WebhooksOptions['createSender'];
  readonly log: Logger;
  readonly now: () => number;
}

export interface Workers {
  /** What the interface of handlers needs. */
  readonly api: {
    readonly checkReceiver: (url: string) => Promise<void>;
    readonly createSecret: () => string;
    readonly sendTest: Webhooks['sendTest'];
    readonly requestReplay: Webhooks['requestReplay'];
    readonly channels: Channels;
    readonly assertSendsMail: AssertSendsMail;
    readonly sendMessage: Channels['send'];
    readonly testLimits: TestLimits;
    readonly publicUrl: string | null;
  };
  readonly webhooks: Webhooks;
  begin(position: string): void;
  apply(change: Change): void | Promise<void>;
  /** Changes were missed. */
  reset(): void;
  start(): Promise<void>;
  stats(): WorkerStats;
  stop(): Promise<void>;
}

export function createWorkers(parts: WorkerParts): Workers {
  const { database, caches, now, config } = parts;
  const { onRefill, ...records } = createRecords(parts.audit);
  const openHistory = createHistory(database.client);
  let reloaded = Promise.resolve();
  const resolve = createResolve();
  const channels = createOwnChannels(parts, resolve);
  const webhooks = createWebhooks({
    database,
    log: parts.log.child({ module: 'webhooks' }),
    now,
    createSender: parts.createSender ?? (() => createSender(config.webhookNetworks, resolve)),
    onOutcome: parts.onOutcome,
    findAccount: caches.accounts.findAccount,
    findObjects: (scope, keys) => findObjectIds(database, scope, keys),
    findScopeObjects: (scopes) => findScopeObjects(database, scopes),
    findAudience: caches.currentAudiences.find,
    openHistory,
    livePosition: () => engine.position(),
    ...records,
  });
  const alarms: Alarms = createOwnAlarms(parts, (...given) => engine.offer(alarms.processor, ...given));
  const notifier = createOwnNotifier(parts, channels);
  const engine = createEngine({
    database,
    now,
    log: parts.log.child({ module: 'processing' }),
    // Alarms are the first: they may leave tasks for another turn, with which those of the others wait.
    processors: [alarms.processor, webhooks.processor, notifier.processor],
    // What was missed is for the webhooks of now.
    openHistory: (position) => reloaded.then(() => openHistory(position)),
    onRefill,
  });
  return {
    webhooks,
    begin: engine.begin,
    api: createApi(parts, { webhooks, channels, resolve }),
    apply(change) {
      const applied = [webhooks.apply(change), alarms.apply(change)].filter((one) => one !== undefined);
      return applied.length === 0 ? engine.apply(change) : Promise.all(applied).then(() => engine.apply(change));
    },
    reset() {
      reloaded = Promise.all([webhooks.reload(), alarms.reload()]).then(() => undefined);
    },
    async start() {
      await webhooks.start();
      await alarms.start();
      await engine.start();
      notifier.start();
    },
    stats: () => statsOf(engine, webhooks, alarms),
    async stop() {
      alarms.stop();
      notifier.stop();
      await engine.stop();
      await webhooks.stop();
      channels.close();
    },
  };
}

function createApi(
  { database, config }: WorkerParts,
  { webhooks, channels, resolve }: { webhooks: Webhooks; channels: Channels; resolve: Resolve },
): Workers['api'] {
  return {
    createSecret,
    sendTest: webhooks.sendTest,
    requestReplay: webhooks.requestReplay,
    checkReceiver: (url) => checkReceiver(url, config.webhookNetworks, resolve),
    channels,
    assertSendsMail: createMailCheck(config.notifications),
    sendMessage: channels.send,
    testLimits: createTestLimits(database.client),
    publicUrl: config.notifications.publicUrl,
  };
}

function statsOf(engine: Engine, webhooks: Webhooks, alarms: Alarms): WorkerStats {
  const { running, open, waiting } = webhooks.stats();
  return { ...engine.stats(), requests: running, openBreakers: open, waiting, remembered: alarms.remembered() };
}

const createOwnAlarms = (
  { database, caches, audit, log, deliveredToMs, now }: WorkerParts,
  offer: AlarmsOptions['offer'],
): Alarms =>
  createAlarms({
    database,
    now,
    deliveredToMs,
    offer,
    log: log.child({ module: 'alarms' }),
    models: caches.models,
    findAccount: caches.accounts.findAccount,
    findObjects: (scope, keys) => findObjectIds(database, scope, keys),
    findScopeObjects: (scopes) => findScopeObjects(database, scopes),
    onHeldBack: createHeldBackReporter({ audit, log, now }),
  });

const createOwnChannels = ({ database, config }: WorkerParts, resolve: Resolve): Channels =>
  createChannels(config.notifications, {
    networks: config.webhookNetworks,
    resolve,
    pushKeys: createPushKeys(database),
  });

const createOwnNotifier = ({ database, caches, audit, config, log, now }: WorkerParts, channels: Channels): Notifier =>
  createNotifier({
    database,
    now,
    findAccount: caches.accounts.findAccount,
    send: channels.send,
    publicUrl: config.notifications.publicUrl,
    log: log.child({ module: 'notifications' }),
    onFailed: ({ userId, channel, alarmId, step }, error) =>
      audit.record({
        action: 'notification failed',
        userId,
        ...NO_REQUEST,
        entityId: alarmId,
        fields: [`channel=${kindOf(channel)}`, `step=${step}`, `error=${error}`],
      }),
  });

type Records = Pick<WebhooksOptions, 'onDisabled' | 'onOverflow' | 'onReplayed'> & Pick<EngineOptions, 'onRefill'>;

/** What is recorded as a security event. */
function createRecords(audit: Audit): Records {
  const record = (action: string, handler: StoredHandler | null, fields: readonly string[] | null): void =>
    audit.record({
      action,
      userId: handler?.ownerId ?? null,
      ...NO_REQUEST,
      entityId: handler?.id ?? null,
      fields,
    });
  return {
    onDisabled: ({ stored }) => record('webhook disabled', stored, null),
    onOverflow: ({ stored }, { dead, removed }) =>
      record('webhook queue full', stored, [`dead=${dead}`, ...(removed > 0 ? [`removed=${removed}`] : [])]),
    async onReplayed({ by, handlerId, range, messages }, reason) {
      const incomplete = reason === null ? [] : [`incomplete=${reason}`];
      const fields = [...toRangeTexts(range), `messages=${messages}`, ...incomplete];
      audit.record({ action: 'webhook replayed', ...by, entityId: handlerId, fields });
      await audit.flush();
    },
    onRefill: (partitions, fromMs) =>
      record('history refilled', null, [`from=${new Date(fromMs).toISOString()}`, `partitions=${partitions.length}`]),
  };
}
