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
import { isTransientError } from '../platform/mongo/driver/errors.js';
import { acquireLease } from '../platform/mongo/driver/lease.js';
import type { PackingMetrics } from '../platform/ops/packing-metrics.js';
import { findKept } from './latest.js';
import { RestingObjects } from './resting-objects.js';
import { findOldObjects, findSpansAround, type OldRow, type OldRows, readOldRows } from './store/old-rows.js';
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
  const resting = new RestingObjects(everyMs * FIRST_REST_PASSES);
  while (!signal.aborted) {
    try {
      const lease = await acquireLease(database, PACKING_LEASE, LIMITS.leaseMs);
      if (lease !== null) {
        const pass = createPass(options, lease.fence, AbortSignal.any([signal, lease.lost]), resting);
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
/** Of the time that it has worked. */
const PAUSE_SHARE = 1 / 2;
/** Half of it at least: a pass or two. */
const FIRST_REST_PASSES = 4;

/** What is stored and waits for its commit. */
interface Waiting {
  readonly step: PendingStep;
  readonly storedAtMs: number;
  /** The time of its first packet. */
  readonly firstMs: number;
}

/** An object that has more rows than were planned together. */
interface Unfinished {
  readonly objectId: string;
  /** The place after which its other rows are. */
  readonly next: PlaceInOrder;
}

/** One pass over all objects but those that rest. Exported for tests. */
export const createPass = (
  options: RunOptions,
  fence: Fence,
  signal: AbortSignal,
  resting = new RestingObjects(DAY_MS),
): { run(): Promise<void> } => new Pass(options, fence, signal, resting);

class Pass {
  readonly #options: RunOptions;
  readonly #fence: Fence;
  readonly #signal: AbortSignal;
  readonly #resting: RestingObjects;
  readonly #waiting: Waiting[] = [];
  readonly #unfinished: Unfinished[] = [];
  readonly #total = { packets: 0, buckets: 0, rowBytes: 0, bucketBytes: 0 };
  /** Objects of which something could not be packed. */
  readonly #left = new Set<string>();
  readonly #failed = new Set<string>();
  /** Objects that were left out of earlier passes, and are tried again. */
  readonly #again = new Set<string>();
  #fenceError: unknown = null;

  constructor(options: RunOptions, fence: Fence, signal: AbortSignal, resting: RestingObjects) {
    this.#options = options;
    this.#signal = signal;
    this.#resting = resting;
    this.#fence = (session) =>
      fence(session).catch((error) => {
        this.#fenceError = error;
        throw error;
      });
  }

  async run(): Promise<void> {
    const { database, packAfterMs, log, metrics, now } = this.#options;
    const signal = this.#signal;
    const beganMs = now();
    // Those of an instance that stopped.
    for (const { firstMs, ...step } of await findPending(database)) {
      this.#waiting.push({ step, storedAtMs: clock.steadyMs(), firstMs });
    }
    for (const objectId of await findOldObjects(database, beganMs - packAfterMs)) {
      while (!signal.aborted && this.#isDue()) await this.#settle();
      if (signal.aborted) break;
      if (this.#resting.has(objectId)) continue;
      if (this.#resting.remembers(objectId)) this.#again.add(objectId);
      // Its rows are planned again when the pending buckets count.
      if (!this.#waiting.some(({ step }) => step.objectId === objectId)) {
        await this.#attempt(objectId, () => this.#begin(objectId, null));
      }
    }
    while (!signal.aborted && this.#waiting.length + this.#unfinished.length > 0) await this.#continue();
    for (const objectId of this.#again) if (!this.#left.has(objectId)) this.#resting.delete(objectId);
    if (this.#total.packets > 0) log.info({ ...this.#total }, 'packed history');
    if (!signal.aborted) metrics.passed(beganMs);
  }

  /**
   * Null where the work fails for this object alone: the pass goes on, also with the rest of the object. It is left out afterwards
   * even if the error ends the pass, so that the next one does not meet the same first.
   */
  async #attempt<T>(objectId: string, work: () => Promise<T>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      if (this.#signal.aborted || error === this.#fenceError) throw error;
      this.#leave(objectId);
      if (isTransientError(error) || isDiskFull(error)) throw error;
      this.#noteFailure(objectId, error);
      return null;
    }
  }

  /** Throws where it is not for the objects that they fail. */
  #noteFailure(objectId: string, error: unknown): void {
    const { log, metrics } = this.#options;
    metrics.failed();
    // The others of this pass are counted.
    if (this.#failed.size === 0) {
      log.warn({ err: error, object: objectId }, 'failed to pack the history of an object; leaving it out for now');
    }
    this.#failed.add(objectId);
    if (this.#failed.size > LIMITS.packingFailedObjects) throw error;
  }

  /** Once in a pass: something of the object was not packed, and would not be in the next pass. */
  #leave(objectId: string): void {
    if (this.#left.has(objectId)) return;
    this.#left.add(objectId);
    this.#resting.add(objectId);
  }

  /** Stores more buckets of the long histories, by turns, while none of those that are stored has waited long enough. */
  async #continue(): Promise<void> {
    const unfinished = this.#isDue() ? undefined : this.#unfinished.shift();
    if (unfinished === undefined) return this.#settle();
    const { objectId, next } = unfinished;
    await this.#attempt(objectId, () => this.#begin(objectId, next));
  }

  #isDue(): boolean {
    const [first] = this.#waiting;
    if (first === undefined) return false;
    return this.#waiting.length >= LIMITS.packingStepsWaiting || hasSettled(first);
  }

  /** Works, then pauses for half as long, and for long enough to keep the rate of packets that come to count. */
  async #work<T>(packetsIn: (result: T) => number, work: () => Promise<T>): Promise<T> {
    const startMs = clock.steadyMs();
    const result = await work();
    const workMs = clock.steadyMs() - startMs;
    const dueMs = (packetsIn(result) * 1_000) / LIMITS.packingPacketsPerSecond;
    const pauseMs = Math.max(workMs * PAUSE_SHARE, dueMs - workMs);
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
      const { steps, next } = await this.#store(objectId, { rows, areAll, last, from });
      if (steps.length > 0 && !areAll) this.#unfinished.push({ objectId, next });
      if (steps.length > 0 || areAll) return;
      after = next;
    }
  }

  async #store(
    objectId: string,
    { rows, areAll, last, from }: OldRows & { readonly last: PlaceInOrder; readonly from: PlaceInOrder | null },
  ): Promise<{ steps: PendingStep[]; next: PlaceInOrder }> {
    const { database, packAfterMs, now } = this.#options;
    const steps: PendingStep[] = [];
    const [first] = rows;
    if (first === undefined) return { steps, next: last };
    // What this pass has stored up to there does not count yet, and fills its buckets.
    const around = await findSpansAround(database, objectId, { first, last });
    const spans = around.filter(({ to }) => from === null || compare(to, from) >= 0);
    const plan = planPacking({ rows, areAll, spans, nowMs: now(), packAfterMs });
    for (const { rows, replaced } of plan) {
      const packing = { objectId, rows, replaces: replaced?.id ?? null };
      if (this.#signal.aborted) break;
      const step = await this.#attempt(objectId, () => this.#storeStep(packing));
      if (step === null) this.#leave(objectId);
      else {
        steps.push(step);
        this.#waiting.push({ step, storedAtMs: clock.steadyMs(), firstMs: (rows[0] as OldRow).timeMs });
      }
    }
    const ends = plan.map(({ rows }) => rows.at(-1) as OldRow).sort(compare);
    return { steps, next: ends.at(-1) ?? last };
  }

  async #storeStep(packing: Packing): Promise<PendingStep | null> {
    const { database, log, metrics } = this.#options;
    try {
      return await this.#work(
        () => 0,
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

  /**
   * Commits what has waited long enough, the oldest packets first. Rows of all objects lie together by time: in this order, the database
   * changes each page a few times in a row, and not once for each object, between which it would write the page.
   */
  async #settle(): Promise<void> {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const leftMs = first.storedAtMs + LIMITS.packingSettleMs - clock.steadyMs();
    await clock.wait(Math.max(0, leftMs), { signal: this.#signal }).catch(() => undefined);
    if (this.#signal.aborted) return;
    let oldest = first;
    for (const one of this.#waiting) if (one.firstMs < oldest.firstMs && hasSettled(one)) oldest = one;
    this.#waiting.splice(this.#waiting.indexOf(oldest), 1);
    await this.#attempt(oldest.step.objectId, () => this.#commit(oldest.step));
  }

  async #commit(step: PendingStep): Promise<void> {
    const { database, metrics } = this.#options;
    const packed = await this.#work(
      (done: PackedStep | null) => done?.packets ?? 0,
      () => commitStep(database, step, this.#fence),
    );
    if (packed === null) return;
    metrics.packed(packed);
    this.#total.packets += packed.packets;
    this.#total.buckets += packed.buckets;
    this.#total.rowBytes += packed.rowBytes;
    this.#total.bucketBytes += packed.bucketBytes;
  }
}

const hasSettled = ({ storedAtMs }: Waiting): boolean => clock.steadyMs() - storedAtMs >= LIMITS.packingSettleMs;

const compare = (one: PlaceInOrder, other: PlaceInOrder): number =>
  one.timeMs - other.timeMs || one.stampUs - other.stampUs;
