/**
 * One instance of the service: the real ingest, change stream, caches, live feed, and where a run has them the workers (processing,
 * webhooks, alarms), commands, presence or packing over a simulated database. It connects them as `context.ts` and `watching.ts` do; HTTP, MQTT and
 * Socket.IO are left out.
 */
import type { Logger } from 'pino';
import { createUseNotes } from '../../src/accounts/accounts.js';
import type { Audit } from '../../src/accounts/audit.js';
import { createIdentify, type Identify } from '../../src/accounts/identify.js';
import { createCaches } from '../../src/caches.js';
import type { Change } from '../../src/core/change.js';
import { LIMITS } from '../../src/core/limits.js';
import { createFeed, type Feed } from '../../src/live/feed.js';
import { createFinders } from '../../src/live/finders.js';
import { createIngest, type Ingest } from '../../src/packets/ingest.js';
import { createStampClock } from '../../src/packets/packet.js';
import { clock } from '../../src/platform/clock.js';
import { createCheckTurns, createSubscriptionQueue } from '../../src/platform/fairness.js';
import { createChangeConsumers } from '../../src/platform/mongo/changes/consumers.js';
import { createHistory } from '../../src/platform/mongo/changes/history.js';
import { startWatcher, type Watcher } from '../../src/platform/mongo/changes/watcher.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../src/platform/mongo/driver/errors.js';
import { retryUntilAvailable } from '../../src/platform/ops/lifecycle.js';
import { createWorkers, type WorkerParts, type Workers } from '../../src/workers.js';
import { type CommandParts, createCommandParts } from './command-parts.js';
import { simulatedClient } from './database/client.js';
import type { SimulatedDatabase } from './database/network.js';
import { PACK_AFTER_MS, type PackingParts, startPackingParts } from './packing.js';
import { createPresenceParts, type PresenceParts } from './presence-parts.js';
import type { Receivers } from './receivers.js';
import type { Extra } from './steps.js';

export interface Instance {
  readonly feed: Feed;
  readonly ingest: Ingest;
  /** Null in runs without. */
  readonly workers: Workers | null;
  /** Null in runs without. */
  readonly commands: CommandParts | null;
  /** Null in runs without. */
  readonly presence: PresenceParts | null;
  /** Null in runs without. */
  readonly packing: PackingParts | null;
  /** Up to where it has taken changes in, and had some time ago. */
  readonly applied: () => string;
  readonly appliedBefore: () => string;
}

export interface InstanceOptions {
  readonly log: Logger;
  /** Null in runs without workers. */
  readonly outside: Outside | null;
  readonly extra: Extra | null;
}

/** What the workers of an instance need of the world around them. */
export interface Outside {
  readonly receivers: Receivers;
  readonly note: (name: string) => void;
}

/** A credential of the simulation: it stands for a signed token. */
export const credentialOf = (tokenId: string, userId: string): string => `${tokenId}.${userId}`;

function createIdentity(database: Database, caches: ReturnType<typeof createCaches>): Identify {
  const noteUse = createUseNotes(database, 'tokens', clock.now);
  return createIdentify({
    accounts: caches.accounts,
    noteUse,
    sessions: { find: async () => null } as never,
    tokens: {
      verify(credential: string) {
        const [tokenId = '', userId = ''] = credential.split('.');
        return { tokenId, userId, expiresAtMs: Number.POSITIVE_INFINITY };
      },
    } as never,
  });
}

/** How long it may take from the look at rights until a message is sent: one answer of the database. */
const LOOKING_MS = LIMITS.databaseAnswerMs + 100;

/** Up to where an instance has taken changes in, now and when it looked at the rights of what it sends now. */
function createApplied() {
  const known: { readonly atMs: number; readonly position: string }[] = [];
  return {
    add: (position: string): void => void known.push({ atMs: clock.steadyMs(), position }),
    last: (): string => known.at(-1)?.position ?? '',
    before: (): string => known.findLast(({ atMs }) => atMs <= clock.steadyMs() - LOOKING_MS)?.position ?? '',
  };
}

/** `applied` is up to where the instance had taken changes in. */
function createOwnWorkers(
  parts: Pick<WorkerParts, 'database' | 'caches' | 'deliveredToMs' | 'log'>,
  { receivers, note }: Outside,
  applied: () => string,
): Workers {
  return createWorkers({
    ...parts,
    audit: { record: ({ action }: { action: string }) => note(`workers: ${action}`) } as unknown as Audit,
    config: { webhookNetworks: [], notifications: { mail: null, telegram: null, publicUrl: null } },
    createSender: () => receivers.senderFor(applied),
    onOutcome: (outcome) => note(`webhook: ${outcome}`),
    now: clock.now,
  });
}

/** Starts an instance in the name of whoever runs; resolves when its change stream delivers. */
export async function startInstance(
  simulated: SimulatedDatabase,
  { log, outside, extra }: InstanceOptions,
): Promise<Instance> {
  const client = simulatedClient(simulated);
  const database = databaseOf(client, { now: clock.now, aheadMs: LIMITS.packetAheadMs });
  let watcher: Watcher | null = null;
  const deliveredTo = (): string | null => watcher?.position() ?? null;
  const deliveredToMs = (): number => watcher?.deliveredToMs() ?? 0;
  const caches = createCaches(database, {
    isLive: () => watcher?.isLive() ?? false,
    deliveredTo,
    checkTurns: createCheckTurns(),
    onFailedFormula: () => undefined,
  });
  const identify = createIdentity(database, caches);
  const feed = createFeed({
    identify,
    wasAt: caches.accounts.wasAt,
    deliveredTo,
    deliveredToMs,
    ...createFinders(database, createSubscriptionQueue()),
    openHistory: createHistory(client),
    findAudience: caches.audiences.find,
    prepareAudiences: caches.audiences.prepare,
    isLive: () => watcher?.isLive() ?? false,
    maxSubscribers: { perUser: 100, perAddress: 1_000 },
    log,
    now: clock.now,
  });
  const publish = async (change: Parameters<Feed['publish']>[0]): Promise<void> => void (await feed.publish(change));
  const applied = createApplied();
  const workers =
    outside === null ? null : createOwnWorkers({ database, caches, deliveredToMs, log }, outside, applied.before);
  const commands = extra === 'commands' ? createCommandParts({ database, caches, identify, log }) : null;
  const packAfterMs = extra === 'packing' ? PACK_AFTER_MS : null;
  const ingest = createIngest(database, createStampClock(clock.now, clock.steadyMs), packAfterMs);
  const isLive = (): boolean => watcher?.isLive() ?? false;
  const presence =
    extra === 'presence' ? createPresenceParts({ database, caches, identify, ingest, isLive, log }) : null;
  const others = [commands, presence?.gateway ?? null, workers].flatMap((one) => (one === null ? [] : [one.apply]));
  const consume = createChangeConsumers([caches.apply, publish, ...others]);
  const watching = {
    client: simulatedClient(simulated),
    log,
    now: clock.now,
    onStart(position: string) {
      feed.begin(position);
      workers?.begin(position);
      applied.add(position);
    },
    onBatch: feed.prepare,
    async onChange(change: Change) {
      await consume(change);
      applied.add(change.position);
    },
    onGap() {
      caches.invalidateAll();
      commands?.reset();
      presence?.gateway.reset();
      workers?.reset();
    },
    onSkipped() {
      caches.invalidateAll();
      feed.forget();
    },
  };
  const signal = new AbortController().signal;
  const start = () => mapDriverErrors(() => startWatcher(watching), null);
  const waiting = { signal, onUnavailable: () => undefined };
  watcher = await retryUntilAvailable(start, waiting);
  if (workers !== null) await retryUntilAvailable(workers.start, waiting);
  commands?.start();
  if (presence !== null) await retryUntilAvailable(presence.gateway.start, waiting);
  const packing = extra === 'packing' ? startPackingParts(database, log) : null;
  const { last, before } = applied;
  const stores = presence?.ingest ?? ingest;
  return { feed, workers, commands, presence, packing, ingest: stores, applied: last, appliedBefore: before };
}
