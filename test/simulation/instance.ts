/**
 * One instance of the service: the real ingest, change stream, caches and live feed over a simulated database. It connects them as
 * `context.ts` and `watching.ts` do; HTTP, MQTT and Socket.IO are left out.
 */
import type { Logger } from 'pino';
import { createUseNotes } from '../../src/accounts/accounts.js';
import { createIdentify, type Identify } from '../../src/accounts/identify.js';
import { createCaches } from '../../src/caches.js';
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
import { simulatedClient } from './database/client.js';
import type { SimulatedDatabase } from './database/network.js';

export interface Instance {
  readonly feed: Feed;
  readonly ingest: Ingest;
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

/** Starts an instance in the name of whoever runs; resolves when its change stream delivers. */
export async function startInstance(simulated: SimulatedDatabase, log: Logger): Promise<Instance> {
  const client = simulatedClient(simulated);
  const database = databaseOf(client, { now: clock.now, aheadMs: LIMITS.packetAheadMs });
  let watcher: Watcher | null = null;
  const caches = createCaches(database, {
    isLive: () => watcher?.isLive() ?? false,
    checkTurns: createCheckTurns(),
    onFailedFormula: () => undefined,
  });
  const feed = createFeed({
    identify: createIdentity(database, caches),
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
  const watching = {
    client: simulatedClient(simulated),
    log,
    now: clock.now,
    onStart: (position: string) => feed.begin(position),
    onBatch: feed.prepare,
    onChange: createChangeConsumers([caches.apply, publish]),
    onGap: () => caches.invalidateAll(),
  };
  const signal = new AbortController().signal;
  const start = () => mapDriverErrors(() => startWatcher(watching), null);
  watcher = await retryUntilAvailable(start, { signal, onUnavailable: () => undefined });
  return { feed, ingest: createIngest(database, createStampClock(clock.now, clock.steadyMs)) };
}
