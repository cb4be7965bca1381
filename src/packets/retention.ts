/**
 * Removes packets that exceed the retention time of their object's model or of the installation, and packets of removed objects.
 * One instance at a time checks all objects, with pauses that keep the database load low. The latest packet of an object and
 * the packet of its state are kept whatever their age.
 */

import type { Binary } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { DAY_MS } from '../core/units.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { acquireLease } from '../platform/mongo/driver/lease.js';
import { findKept } from './latest.js';
import { type OldestBucket, readOldest, readOldestBuckets, removePacketsOf } from './store/removal.js';

export interface SweeperOptions {
  readonly database: Database;
  /** The default for models without a retention time; null keeps packets forever. */
  readonly retentionDays: number | null;
  readonly log: { info(details: object, message: string): void; warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Swept {
  /** Packets removed because of their age. */
  expired: number;
  /** Packets removed because their object does not exist. */
  orphaned: number;
}

export interface Sweeper {
  /** Checks all objects once. */
  sweep(signal: AbortSignal): Promise<Swept>;
}

/** Sweeps repeatedly until it is stopped. */
export function startSweeper(options: SweeperOptions): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const running = run(options, createSweeper(options), stopping.signal);
  return {
    stop() {
      stopping.abort();
      return running;
    },
  };
}

async function run({ database, log }: SweeperOptions, sweeper: Sweeper, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const startMs = clock.steadyMs();
    try {
      const lease = await acquireLease(database, 'sweep', LIMITS.leaseMs);
      if (lease !== null) {
        const swept = await sweeper.sweep(AbortSignal.any([signal, lease.lost])).finally(lease.release);
        if (swept.expired + swept.orphaned > 0) log.info({ ...swept }, 'removed packets');
      }
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'failed to remove old packets; retrying');
    }
    const pauseMs = Math.max(LIMITS.sweepPauseMs, (clock.steadyMs() - startMs) * LIMITS.sweepPauseRatio);
    await clock.wait(Math.min(pauseMs, LIMITS.timerMs), { signal }).catch(() => undefined);
  }
}

export function createSweeper({ database, retentionDays, now }: Omit<SweeperOptions, 'log'>): Sweeper {
  // Since when each object has been missing. A restore stores packets before their objects, so orphans get a grace time.
  let missing = new Map<string, number>();
  return {
    async sweep(signal) {
      const swept = { expired: 0, orphaned: 0 };
      const missingNow = new Map<string, number>();
      const daysOf = await findRetentions(database);
      for await (const oldest of oldestOf(database)) {
        if (signal.aborted) break;
        const models = await modelsOf(database, oldest);
        const old = oldest.flatMap((one): Old[] => {
          const days = daysOf.get(models.get(String(one._id)) ?? '') ?? retentionDays ?? 0;
          const beforeMs = now() - days * DAY_MS;
          const cutsBeforeMs = beforeMs - days * DAY_MS * LATE_SHARE;
          const isOld = one.time < beforeMs && (one.lastTime < beforeMs || one.time < cutsBeforeMs);
          return models.has(String(one._id)) && days > 0 && isOld ? [{ ...one, beforeMs, cutsBeforeMs }] : [];
        });
        swept.expired += await removeOld(database, old, signal);
        const gone = oldest.map(({ _id }) => String(_id)).filter((id) => !models.has(id));
        for (const id of gone.slice(0, LIMITS.orphansNoted)) missingNow.set(id, missing.get(id) ?? now());
      }
      for (const [id, sinceMs] of missingNow) {
        if (now() - sinceMs < LIMITS.orphanGraceMs || signal.aborted) continue;
        swept.orphaned += await removePacketsOf(database, { objectId: id, which: 'all', signal });
      }
      if (!signal.aborted) missing = missingNow;
      return swept;
    },
  };
}

/** By which share of their retention time packets may be kept longer in a bucket that has younger ones, too. */
const LATE_SHARE = 1 / 10;

/** The oldest row of an object, or its oldest bucket. */
interface Oldest extends OldestBucket {
  /** That of a row. */
  readonly key: Binary | null;
}

async function* oldestOf(database: Database): AsyncGenerator<Oldest[]> {
  for await (const rows of readOldest(database)) yield rows.map((row) => ({ ...row, lastTime: row.time }));
  for await (const buckets of readOldestBuckets(database)) yield buckets.map((one) => ({ ...one, key: null }));
}

interface Old extends Oldest {
  readonly beforeMs: number;
  readonly cutsBeforeMs: number;
}

/** The retention times of models that define one, in days; 0 keeps packets forever. */
async function findRetentions({ db }: Database): Promise<Map<string, number>> {
  const cursor = db.collection('models').find({ retentionDays: { $type: 'number' } });
  const found = await mapDriverErrors(() => cursor.project({ retentionDays: 1 }).toArray());
  return new Map(found.map(({ _id, retentionDays }) => [String(_id), retentionDays as number]));
}

/** The models of the existing objects. */
async function modelsOf({ db }: Database, packets: readonly Oldest[]): Promise<Map<string, string>> {
  const these = { _id: { $in: packets.map(({ _id }) => _id) } };
  const options = {
    projection: { model: 1 },
    readConcern: { level: 'majority' },
    batchSize: packets.length + 1,
  } as const;
  const found = await mapDriverErrors(() => db.collection('objects').find(these, options).toArray());
  return new Map(found.map(({ _id, model }) => [String(_id), String(model)]));
}

async function removeOld(database: Database, old: readonly Old[], signal: AbortSignal): Promise<number> {
  const kept = await findKept(
    database,
    old.map(({ _id }) => String(_id)),
  );
  let removed = 0;
  for (const { _id, key: oldest, beforeMs, cutsBeforeMs } of old) {
    const keys = kept.get(String(_id)) ?? [];
    // Only the packets to keep are left.
    if (oldest !== null && keys.every((key) => key.toString('hex') === oldest.toString('hex'))) continue;
    const which = { time: { below: beforeMs }, exceptKeys: keys };
    removed += await removePacketsOf(database, { objectId: String(_id), which, signal, cutsBeforeMs });
  }
  return removed;
}
