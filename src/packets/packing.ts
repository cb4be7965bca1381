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
export const createPass = (options: RunOptions, fence: Fence, signal: AbortSignal): { run(): Promise<void> } =>
  new Pass(options, fence, signal);

class Pass {
  readonly #options: RunOptions;
  readonly #fence: Fence;
  readonly #signal: AbortSignal;
  readonly #waiting: Waiting[] = [];
  readonly #total = { packets: 0, buckets: 0, rowBytes: 0, bucketBytes: 0 };

  constructor(options: RunOptions, fence: Fence, signal: AbortSignal) {
    this.#options = options;
    this.#fence = fence;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    const { database, packAfterMs, log, metrics, now } = this.#options;
    const signal = this.#signal;
    const beganMs = now();
    // Those of an instance that stopped.
    for (const step of await findPending(database)) {
      this.#waiting.push({ objectId: step.objectId, steps: [step], storedAtMs: clock.steadyMs(), next: null });
    }
    for (const objectId of await findOldObjects(database, beganMs - packAfterMs)) {
      while (!signal.aborted && this.#isDue()) await this.#settle();
      if (signal.aborted) break;
      // Its rows are planned again when the pending buckets count.
      if (!this.#waiting.some((one) => one.objectId === objectId)) await this.#begin(objectId, null);
    }
    while (!signal.aborted && this.#waiting.length > 0) await this.#settle();
    if (this.#total.packets > 0) log.info({ ...this.#total }, 'packed history');
    if (!signal.aborted) metrics.passed(beganMs);
  }

  #isDue(): boolean {
    const [first] = this.#waiting;
    if (first === undefined) return false;
    if (this.#waiting.length >= LIMITS.packingObjectsWaiting) return true;
    return clock.steadyMs() - first.storedAtMs >= LIMITS.packingSettleMs;
  }

  /** Works, then pauses for as long, and so long that all of the work takes a tenth of a core. */
  async #work<T>(packetsIn: (result: T) => number, work: () => Promise<T>): Promise<T> {
    const startMs = clock.steadyMs();
    const result = await work();
    const pauseMs = Math.max(clock.steadyMs() - startMs, (packetsIn(result) * 1_000) / LIMITS.packingPacketsPerSecond);
    await clock.wait(pauseMs, { signal: this.#signal }).catch(() => undefined);
    return result;
  }

  /** Stores the buckets of the object's next rows. */
  async #begin(objectId: string, from: PlaceInOrder | null): Promise<void> {
    const { database, packAfterMs, now } = this.#options;
    const kept = new Set((await findKept(database, [objectId])).get(objectId)?.map((key) => key.toString('hex')));
    for (let after = from; !this.#signal.aborted; ) {
      const reading = { objectId, toMs: now() - packAfterMs, after };
      const read = await this.#work(
        () => 0,
        () => readOldRows(database, reading),
      );
      const rows = read.rows.filter(({ key }) => !kept.has(key.toString('hex')));
      const { areAll, last } = read;
      if (last === null || (rows.length === 0 && areAll)) return;
      const { steps, next } = await this.#store(objectId, { rows, areAll, last });
      if (steps.length > 0) {
        this.#waiting.push({ objectId, steps, storedAtMs: clock.steadyMs(), next: areAll ? null : next });
      }
      if (steps.length > 0 || areAll) return;
      after = next;
    }
  }

  async #store(
    objectId: string,
    { rows, areAll, last }: { rows: readonly OldRow[]; areAll: boolean; last: PlaceInOrder },
  ): Promise<{ steps: PendingStep[]; next: PlaceInOrder }> {
    const { database, packAfterMs, now } = this.#options;
    const steps: PendingStep[] = [];
    const [first] = rows;
    if (first === undefined) return { steps, next: last };
    const spans = await findSpansAround(database, objectId, { first, last });
    const plan = planPacking({ rows, areAll, spans, nowMs: now(), packAfterMs });
    for (const { rows, replaced } of plan) {
      const packing = { objectId, rows, replaces: replaced?.id ?? null };
      const stored = this.#signal.aborted ? null : await this.#storeStep(packing);
      if (stored !== null) steps.push(stored);
    }
    return { steps, next: plan.at(-1)?.rows.at(-1) ?? last };
  }

  async #storeStep(packing: Packing): Promise<PendingStep | null> {
    const { database, log, metrics } = this.#options;
    try {
      return await this.#work(
        () => packing.rows.length,
        () => storePending(database, packing),
      );
    } catch (error) {
      if (!(error instanceof DamagedBucketError)) throw error;
      metrics.damaged();
      const details = { err: error, object: packing.objectId };
      log.error(details, 'rows cannot be added to packed history that is damaged');
      return null;
    }
  }

  /** Commits what has waited longest, and goes on with its object. */
  async #settle(): Promise<void> {
    const { database, metrics } = this.#options;
    const signal = this.#signal;
    const { objectId, steps, storedAtMs, next } = this.#waiting.shift() as Waiting;
    const leftMs = storedAtMs + LIMITS.packingSettleMs - clock.steadyMs();
    await clock.wait(Math.max(0, leftMs), { signal }).catch(() => undefined);
    for (const step of steps) {
      if (signal.aborted) return;
      const packed = await this.#work(
        (done: PackedStep | null) => done?.packets ?? 0,
        () => commitStep(database, step, this.#fence),
      );
      if (packed === null) continue;
      metrics.packed(packed);
      this.#total.packets += packed.packets;
      this.#total.buckets += packed.buckets;
      this.#total.rowBytes += packed.rowBytes;
      this.#total.bucketBytes += packed.bucketBytes;
    }
    if (next !== null && !signal.aborted) await this.#begin(objectId, next);
  }
}
