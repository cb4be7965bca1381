/**
 * Packets end: those older than their object's model, or the installation, keeps them, and those whose object is gone. One
 * instance at a time looks through the objects, at a pace that leaves the database to others. An object's latest packet, and
 * the one that is its state, stay however old they are.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { type Binary, ObjectId } from 'mongodb';
import { LIMITS } from '../model/limits.js';
import type { Database } from './connect.js';
import { translated } from './documents.js';
import { takeLease } from './lease.js';
import { packetIdIn } from './packet-key.js';
import { PACKETS, removePacketsWhere } from './packets.js';
import { findKept } from './states.js';

const DAY_MS = 86_400_000;

export interface SweeperOptions {
  readonly database: Database;
  /** How long packets are kept whose model does not say; null for ever. */
  readonly retentionDays: number | null;
  readonly log: { info(details: object, message: string): void; warn(details: object, message: string): void };
  readonly now: () => number;
}

export interface Swept {
  /** Packets removed because of their age. */
  expired: number;
  /** Packets removed because their object is gone. */
  orphaned: number;
}

export interface Sweeper {
  /** Looks through everything once. */
  sweep(signal: AbortSignal): Promise<Swept>;
}

/** Sweeps now and again until it is stopped. */
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
    const startMs = performance.now();
    try {
      const lease = await takeLease(database, 'sweep', LIMITS.leaseMs);
      if (lease !== null) {
        const swept = await sweeper.sweep(AbortSignal.any([signal, lease.lost])).finally(lease.release);
        if (swept.expired + swept.orphaned > 0) log.info({ ...swept }, 'packets were removed');
      }
    } catch (error) {
      if (!signal.aborted)
        log.warn({ err: error }, 'packets could not be looked through for those to remove: tried again');
    }
    const pauseMs = Math.max(LIMITS.sweepPauseMs, (performance.now() - startMs) * LIMITS.sweepPauseRatio);
    await wait(Math.min(pauseMs, LIMITS.timerMs), undefined, { signal }).catch(() => undefined);
  }
}

export function createSweeper({ database, retentionDays, now }: Omit<SweeperOptions, 'log'>): Sweeper {
  // Where packets are restored before their objects, nobody must be quicker: since when each object has been missing.
  let missing = new Map<string, number>();
  return {
    async sweep(signal) {
      const swept = { expired: 0, orphaned: 0 };
      const missingNow = new Map<string, number>();
      const daysOf = await findRetentions(database);
      for await (const oldest of oldestPackets(database)) {
        if (signal.aborted) break;
        const models = await modelsOf(database, oldest);
        const old = oldest.flatMap((packet): Old[] => {
          const days = daysOf.get(models.get(String(packet._id)) ?? '') ?? retentionDays ?? 0;
          const beforeMs = now() - days * DAY_MS;
          return models.has(String(packet._id)) && days > 0 && packet.time < beforeMs ? [{ ...packet, beforeMs }] : [];
        });
        swept.expired += await removeOld(database, old, signal);
        const gone = oldest.map(({ _id }) => String(_id)).filter((id) => !models.has(id));
        for (const id of gone.slice(0, LIMITS.orphansNoted)) missingNow.set(id, missing.get(id) ?? now());
      }
      for (const [id, sinceMs] of missingNow) {
        if (now() - sinceMs < LIMITS.orphanGraceMs || signal.aborted) continue;
        swept.orphaned += await removePacketsWhere(database, { _oid: new ObjectId(id) }, signal);
      }
      if (!signal.aborted) missing = missingNow;
      return swept;
    },
  };
}

/** The oldest packet of an object, and the object's `_id`. */
interface Oldest {
  readonly _id: ObjectId;
  readonly packetId: Binary | ObjectId;
  readonly time: number;
}

interface Old extends Oldest {
  readonly beforeMs: number;
}

/** One step in the index per object that has packets, whether or not it is still there. */
async function* oldestPackets({ db }: Database): AsyncGenerator<Oldest[]> {
  const pipeline = [
    { $sort: { _oid: 1, time: 1, _ts: 1 } },
    { $group: { _id: '$_oid', packetId: { $first: '$_id' }, time: { $first: '$time' } } },
  ];
  const cursor = db.collection(PACKETS).aggregate<Oldest>(pipeline, { batchSize: LIMITS.sweepBatch });
  try {
    while (await translated(() => cursor.hasNext(), null)) yield cursor.readBufferedDocuments();
  } finally {
    await cursor.close();
  }
}

/** The models that say themselves how many days packets are kept, 0 for ever. */
async function findRetentions({ db }: Database): Promise<Map<string, number>> {
  const saying = db.collection('models').find({ retentionDays: { $type: 'number' } });
  const found = await translated(() => saying.project({ retentionDays: 1 }).toArray());
  return new Map(found.map(({ _id, retentionDays }) => [String(_id), retentionDays as number]));
}

/** The models of those of the objects that are there. */
async function modelsOf({ db }: Database, packets: readonly Oldest[]): Promise<Map<string, string>> {
  const these = { _id: { $in: packets.map(({ _id }) => _id) } };
  const options = { projection: { model: 1 }, readConcern: { level: 'majority' }, batchSize: packets.length } as const;
  const found = await translated(() => db.collection('objects').find(these, options).toArray());
  return new Map(found.map(({ _id, model }) => [String(_id), String(model)]));
}

async function removeOld(database: Database, old: readonly Old[], signal: AbortSignal): Promise<number> {
  const kept = await findKept(
    database,
    old.map(({ _id }) => String(_id)),
  );
  let removed = 0;
  for (const { _id, packetId, beforeMs } of old) {
    const keys = kept.get(String(_id)) ?? [];
    // Nothing but its state is left.
    if (keys.every((key) => packetIdIn(key) === packetIdIn(packetId))) continue;
    const others = { _id: { $nin: keys as ObjectId[] } };
    removed += await removePacketsWhere(database, { _oid: _id, time: { $lt: beforeMs }, ...others }, signal);
  }
  return removed;
}
