/** Keeps the outbox bounded while the service runs: queues that are too long, messages that are too old, handlers that are gone. */

import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { acquireLease } from '../platform/mongo/driver/lease.js';
import { countWaiting, findDeliveryHandlers, giveUpLate, removeDeliveries, trimDead } from './delivery-upkeep.js';
import { createQueueBound, type QueueBound } from './queue-bound.js';

export interface UpkeepOptions {
  readonly database: Database;
  readonly isPresent: (handlerId: string) => boolean;
  readonly onOutcome: (outcome: 'dead' | 'overflowed', count: number, ms: null) => void;
  /** Called at most once an hour for a handler whose queue is full. */
  readonly onOverflow: (handlerId: string, counts: { readonly dead: number; readonly removed: number }) => void;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Upkeep {
  readonly add: QueueBound['add'];
  /** How many messages wait for all handlers, if this instance was the last to count them. */
  waiting(): number;
  stop(): Promise<void>;
}

export function startUpkeep(options: UpkeepOptions): Upkeep {
  const stopping = new AbortController();
  const report = createReport(options);
  let waiting = 0;
  const bound = createQueueBound({ ...options, onOverflow: report });
  const running = Promise.all([
    repeat(options, stopping.signal, LIMITS.webhookQueueCheckMs, async () => {
      bound.keepOnly(options.isPresent);
      await bound.check(stopping.signal);
    }),
    repeat(options, stopping.signal, LIMITS.webhookSweepMs, async () => {
      waiting = await sweepInTurn(options, stopping.signal);
    }),
  ]);
  return {
    add: bound.add,
    waiting: () => waiting,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Pauses at least as long as the work took. */
async function repeat(
  { log }: UpkeepOptions,
  signal: AbortSignal,
  pauseMs: number,
  work: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    const startMs = clock.steadyMs();
    await work().catch((error) => log.warn({ err: error }, 'failed to limit webhook queues; retrying'));
    const restMs = Math.min(Math.max(pauseMs, clock.steadyMs() - startMs), LIMITS.timerMs);
    await clock.wait(restMs, { signal }).catch(() => undefined);
  }
}

/** Sweeps if no other instance does. Returns how many messages wait, or 0 without the lease. */
async function sweepInTurn(options: UpkeepOptions, signal: AbortSignal): Promise<number> {
  const lease = await acquireLease(options.database, 'deliveries', LIMITS.leaseMs);
  if (lease === null) return 0;
  try {
    return await countWaiting(options.database, await sweep(options, AbortSignal.any([signal, lease.lost])));
  } finally {
    await lease.release();
  }
}

/** Returns the handlers that have messages. */
async function sweep(
  { database, log, now, onOutcome }: UpkeepOptions,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { present, removed } = await findDeliveryHandlers(database);
  for (const handlerId of removed) {
    if (signal.aborted) return present;
    await removeDeliveries(database, handlerId);
  }
  const error = 'the message was not delivered in time';
  const late = { beforeMs: now() - LIMITS.webhookLifetimeMs, error, nowMs: now() };
  for (const handlerId of present) {
    if (signal.aborted) return present;
    const count = await giveUpLate(database, handlerId, late);
    if (count === 0) continue;
    onOutcome('dead', count, null);
    log.warn({ handler: handlerId, deliveries: count }, 'webhook deliveries are dead: they have waited for too long');
    await trimDead(database, handlerId);
  }
  return present;
}

/** Counts dropped messages between two reports. */
function createReport({ log, now, onOutcome, onOverflow }: UpkeepOptions) {
  const reported = new Map<string, { readonly atMs: number; dead: number; removed: number }>();
  return (handlerId: string, dead: number, removed: number): void => {
    onOutcome('overflowed', dead, null);
    const last = reported.get(handlerId);
    const counts = { dead: dead + (last?.dead ?? 0), removed: removed + (last?.removed ?? 0) };
    if (last !== undefined && now() - last.atMs < LIMITS.webhookQueueReportPauseMs) {
      Object.assign(last, counts);
      return;
    }
    reported.set(handlerId, { atMs: now(), dead: 0, removed: 0 });
    log.warn({ handler: handlerId, ...counts }, 'the queue of a webhook is full: its oldest deliveries are dead');
    onOverflow(handlerId, counts);
  };
}
