/**
 * Packs the old rows of objects into buckets. One instance at a time passes over all objects with old rows. What it stores waits, so that
 * copies of packets that are on their way meet their rows or their buckets, and then takes the place of the rows (store/packing.ts). The
 * latest packet of an object and the packet of its state stay rows.
 */
import { LIMITS } from '../core/limits.js';
import type { PlaceInOrder } from '../core/packet-order.js';
import { DAY_MS } from '../core/units.js';
import { planPacking } from '../packed/plan.js';
import { DamagedBucketError } from '../packed/unpack.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { acquireLease } from '../platform/mongo/driver/lease.js';
import type { PackingMetrics } from '../platform/ops/packing-metrics.js';
import { findKept } from './latest.js';
import { findOldObjects, findSpansAround, type OldRow, readOldRows } from './store/old-rows.js';
import {
  commitStep,
  type Fence,
  findPending,
  isDiskFull,
  type PackedStep,
  type Packing,
  type PendingStep,
  storePending,
} from './store/packing.js';

export interface PackingOptions {
  readonly database: Database;
  /** The age of rows that are packed; null for never. */
  readonly packAfterMs: number | null;
  readonly log: {
    info(details: object, message: string): void;
    warn(details: object, message: string): void;
    error(details: object, message: string): void;
  };
  readonly metrics: PackingMetrics;
  readonly now: () => number;
}

/** Packs until it is stopped. */
export function startPacking(options: PackingOptions): { stop(): Promise<void> } {
  const { packAfterMs } = options;
  if (packAfterMs === null) return { stop: async () => undefined };
  const stopping = new AbortController();
  const running = run({ ...options, packAfterMs }, stopping.signal);
  return {
    stop() {
      stopping.abort();
      return running;
    },
  };
}

type RunOptions = PackingOptions & { readonly packAfterMs: number };

async function run(options: RunOptions, signal: AbortSignal): Promise<void> {
  const { database, packAfterMs, log } = options;
  // Rows may be packed a little later than they could be.
  const everyMs = Math.min(Math.max(packAfterMs * LATE_SHARE, LIMITS.packingPauseMs), DAY_MS);
  while (!signal.aborted) {
    try {
      const lease = await acquireLease(database, PACKING_LEASE, LIMITS.leaseMs);
      if (lease !== null) {
        const pass = createPass(options, lease.fence, AbortSignal.any([signal, lease.lost]));
        await pass.run().finally(lease.release);
      }
    } catch (error) {
      if (isDiskFull(error))
        log.error({ err: error }, 'the disk of the database is full: packing of history stops for now');
      else if (!signal.aborted) log.warn({ err: error }, 'failed to pack history; retrying');
    }
    await clock.wait(everyMs, { signal }).catch(() => undefined);
  }
}

/** The name of the lease: whoever holds it is the only one that packs and unpacks. */
export const PACKING_LEASE = 'packing';
const LATE_SHARE = 1 / 10;

/** What is stored of an object and waits for its commit. */
interface Waiting {
  readonly objectId: string;
  readonly steps: readonly PendingStep[];
  readonly storedAtMs: number;
  /** After which place there are more rows; null if there are none. */
  readonly next: PlaceInOrder | null;
}

/** One pass over all objects. Exported for tests. */
export function createPass(
  { database, packAfterMs, log, metrics, now }: RunOptions,
  fence: Fence,
  signal: AbortSignal,
): { run(): Promise<void> } {
  const waiting: Waiting[] = [];
  const total = { packets: 0, buckets: 0, rowBytes: 0, bucketBytes: 0 };

  /** Works, then pauses for as long, and so long that all of the work takes a tenth of a core. */
  async function work<T>(packets: (result: T) => number, run: () => Promise<T>): Promise<T> {
    const startMs = clock.steadyMs();
    const result = await run();
    const pauseMs = Math.max(clock.steadyMs() - startMs, (packets(result) * 1_000) / LIMITS.packingPacketsPerSecond);
    await clock.wait(pauseMs, { signal }).catch(() => undefined);
    return result;
  }

  async function store(objectId: string, rows: readonly OldRow[], replaces: Packing['replaces']) {
    try {
      return await work(
        () => rows.length,
        () => storePending(database, { objectId, rows, replaces }),
      );
    } catch (error) {
      if (!(error instanceof DamagedBucketError)) throw error;
      metrics.damaged();
      log.error({ err: error, object: objectId }, 'rows cannot be added to packed history that is damaged');
      return null;
    }
  }

  /** Stores the buckets of the object's next rows. */
  async function begin(objectId: string, from: PlaceInOrder | null): Promise<void> {
    const kept = new Set((await findKept(database, [objectId])).get(objectId)?.map((key) => key.toString('hex')));
    for (let after = from; !signal.aborted; ) {
      const toMs = now() - packAfterMs;
      const {
        rows: read,
        areAll,
        last,
      } = await work(
        () => 0,
        () => readOldRows(database, { objectId, toMs, after }),
      );
      const rows = read.filter(({ key }) => !kept.has(key.toString('hex')));
      const [first] = rows;
      if (last === null || (first === undefined && areAll)) return;
      const steps: PendingStep[] = [];
      let next: PlaceInOrder = last;
      if (first !== undefined) {
        const spans = await findSpansAround(database, objectId, { first, last });
        const plan = planPacking({ rows, areAll, spans, nowMs: now(), packAfterMs });
        for (const step of plan) {
          const stored = signal.aborted ? null : await store(objectId, step.rows, step.replaced?.id ?? null);
          if (stored !== null) steps.push(stored);
        }
        next = plan.at(-1)?.rows.at(-1) ?? last;
      }
      if (steps.length > 0) waiting.push({ objectId, steps, storedAtMs: clock.steadyMs(), next: areAll ? null : next });
      if (steps.length > 0 || areAll) return;
      after = next;
    }
  }

  /** Commits what has waited longest, and goes on with its object. */
  async function settle(): Promise<void> {
    const [{ objectId, steps, storedAtMs, next }] = waiting.splice(0, 1) as [Waiting];
    const leftMs = storedAtMs + LIMITS.packingSettleMs - clock.steadyMs();
    await clock.wait(Math.max(0, leftMs), { signal }).catch(() => undefined);
    for (const step of steps) {
      if (signal.aborted) return;
      const packed = await work(
        (done: PackedStep | null) => done?.packets ?? 0,
        () => commitStep(database, step, fence),
      );
      if (packed === null) continue;
      metrics.packed(packed);
      total.packets += packed.packets;
      total.buckets += packed.buckets;
      total.rowBytes += packed.rowBytes;
      total.bucketBytes += packed.bucketBytes;
    }
    if (next !== null && !signal.aborted) await begin(objectId, next);
  }

  const isDue = (): boolean => {
    const [first] = waiting;
    if (first === undefined) return false;
    return (
      waiting.length >= LIMITS.packingObjectsWaiting || clock.steadyMs() - first.storedAtMs >= LIMITS.packingSettleMs
    );
  };

  return {
    async run() {
      const beganMs = now();
      // Those of an instance that stopped.
      for (const step of await findPending(database)) {
        waiting.push({ objectId: step.objectId, steps: [step], storedAtMs: clock.steadyMs(), next: null });
      }
      for (const objectId of await findOldObjects(database, beganMs - packAfterMs)) {
        while (!signal.aborted && isDue()) await settle();
        if (signal.aborted) break;
        // Its rows are planned again when the pending buckets count.
        if (!waiting.some((one) => one.objectId === objectId)) await begin(objectId, null);
      }
      while (!signal.aborted && waiting.length > 0) await settle();
      if (total.packets > 0) log.info({ ...total }, 'packed history');
      if (!signal.aborted) metrics.passed(beganMs);
    },
  };
}
