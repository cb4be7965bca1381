/** Objects that a job leaves out for a while, longer each time in a row: in vain, it would do the same work for them each time. */
import { backoffMs } from '../core/backoff.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';

interface Rest {
  readonly times: number;
  readonly untilMs: number;
}

/** Kept in memory, and bounded: of one that is forgotten, the work is done once more. */
export class RestingObjects {
  readonly #firstMs: number;
  readonly #nowMs: () => number;
  readonly #rests = new Map<string, Rest>();

  constructor(firstMs: number, nowMs: () => number = clock.steadyMs) {
    this.#firstMs = firstMs;
    this.#nowMs = nowMs;
  }

  has(objectId: string): boolean {
    return (this.#rests.get(objectId)?.untilMs ?? Number.NEGATIVE_INFINITY) > this.#nowMs();
  }

  /** Whether it is left out, or was until it is tried again. */
  remembers(objectId: string): boolean {
    return this.#rests.has(objectId);
  }

  /** Twice as long as the last time, up to a bound. */
  add(objectId: string): void {
    const times = (this.#rests.get(objectId)?.times ?? 0) + 1;
    const restMs = backoffMs(times, this.#firstMs, LIMITS.packingRestMaxMs, clock.random());
    this.#rests.delete(objectId);
    const [oldest] = this.#rests.keys();
    if (oldest !== undefined && this.#rests.size >= LIMITS.packingObjectsResting) this.#rests.delete(oldest);
    this.#rests.set(objectId, { times, untilMs: this.#nowMs() + restMs });
  }

  delete(objectId: string): void {
    this.#rests.delete(objectId);
  }
}
