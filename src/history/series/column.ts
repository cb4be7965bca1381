/** Computes the series of one parameter from its values in the order of time: the results of the functions for each bucket. Pure. */
import { riseOf } from './counter.js';
import { isWanted, type SeriesFunction, tracksTime } from './functions.js';
import { findPercentile } from './percentile.js';
import type { ValueStore } from './value-store.js';

export interface Buckets {
  readonly fromMs: number;
  /** The start of each bucket; the first may start before `fromMs`. */
  readonly starts: Float64Array;
  /** The end of the last bucket. */
  readonly endMs: number;
}

/** How long a value holds: until the next one, but no longer than `gapMs`, and not beyond `untilMs`. */
export interface Holding {
  readonly gapMs: number | null;
  readonly untilMs: number;
}

/** Of numbers in the order of time. */
export interface NumberStatistics {
  readonly n: number;
  readonly sum: number;
  readonly min: number;
  readonly max: number;
  readonly first: number;
  readonly last: number;
}

export interface ColumnParts {
  readonly buckets: Buckets;
  readonly functions: readonly SeriesFunction[];
  readonly holding: Holding;
  /** The width of counters that continue at 0 after their largest value; null for counters that are restarted. */
  readonly counterBits: number | null;
  /** Where values are kept for percentiles. */
  readonly createStore: () => ValueStore;
}

/** A class with plain fields, for speed: it receives each value of a million packets. */
export class Column {
  readonly #parts: ColumnParts;
  readonly #results: readonly Float64Array[];
  readonly #gapMs: number;
  readonly #tracksTime: boolean;
  readonly #store: ValueStore | null;
  readonly #matched: Float64Array;
  /** Work that is left to be done in slices. */
  #left: Generator<void, void>[] = [];
  #isKnown = false;
  #bucket = 0;
  #nextMs: number;
  // The state of the current bucket.
  #values = 0;
  #numbers = 0;
  #sum = 0;
  #first = Number.NaN;
  #last = Number.NaN;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  #weighted = 0;
  #weightedMs = 0;
  #knownMs = 0;
  #pairs = 0;
  #change = 0;
  #rise = 0;
  #changeMs = 0;
  // The value that holds now: a number, or NaN and a text; and the time up to which its duration was counted.
  #held = Number.NaN;
  #heldText: string | null = null;
  #heldSinceMs = Number.NaN;
  #seenMs: number;

  constructor(parts: ColumnParts) {
    const { buckets, functions, holding, createStore } = parts;
    this.#parts = parts;
    this.#results = functions.map(() => new Float64Array(buckets.starts.length).fill(Number.NaN));
    this.#gapMs = holding.gapMs ?? Number.POSITIVE_INFINITY;
    this.#tracksTime = functions.some(tracksTime);
    this.#store = functions.some(({ kind }) => kind === 'percentile') ? createStore() : null;
    this.#matched = new Float64Array(functions.length);
    this.#nextMs = this.#endOf(0);
    this.#seenMs = buckets.fromMs;
  }

  /** Adds a number, or a boolean as 1 or 0, in order of time. A value from before the first bucket counts only for how long it holds. */
  addNumber(timeMs: number, value: number): void {
    if (timeMs >= this.#parts.buckets.fromMs) {
      if (this.#tracksTime || timeMs >= this.#nextMs) this.#advance(timeMs);
      this.#count(value);
      const sinceMs = timeMs - this.#heldSinceMs;
      // NaN if the previous value was text or absent.
      if (sinceMs <= this.#gapMs && !Number.isNaN(this.#held)) {
        this.#pairs++;
        this.#change += value - this.#held;
        this.#rise += riseOf(this.#held, value, this.#parts.counterBits);
        this.#changeMs += sinceMs;
      }
    }
    this.#hold(timeMs, value, null);
  }

  /** Adds numbers of one bucket at once, for functions of statistics. `lastMs` is the time of the last one, if a number holds for a while. */
  addStatistics(firstMs: number, lastMs: number, { n, sum, min, max, first, last }: NumberStatistics): void {
    if (firstMs >= this.#nextMs) this.#advance(firstMs);
    this.#values += n;
    if (this.#numbers === 0) this.#first = first;
    this.#numbers += n;
    this.#sum += sum;
    this.#last = last;
    if (min < this.#min) this.#min = min;
    if (max > this.#max) this.#max = max;
    this.#hold(lastMs, last, null);
  }

  /** Adds a text; null for any other value that is not a number. */
  addOther(timeMs: number, text: string | null): void {
    if (timeMs >= this.#parts.buckets.fromMs) {
      this.#advance(timeMs);
      this.#values++;
    }
    this.#hold(timeMs, Number.NaN, text ?? '');
  }

  /** Ends the series. */
  finish(): void {
    this.#advance(this.#parts.buckets.endMs);
  }

  /** The remaining work, in slices. */
  takeWork(): Generator<void, void>[] {
    const left = this.#left;
    if (left.length > 0) this.#left = [];
    return left;
  }

  /** The numbers of each function, NaN where there is none; null if there was no value at all. */
  results(): readonly (readonly [name: string, values: Float64Array])[] | null {
    if (!this.#isKnown) return null;
    return this.#parts.functions.map(({ name }, index) => [name, this.#results[index] as Float64Array]);
  }

  #count(value: number): void {
    this.#values++;
    this.#sum += value;
    this.#last = value;
    if (this.#numbers++ === 0) this.#first = value;
    if (value < this.#min) this.#min = value;
    if (value > this.#max) this.#max = value;
    this.#store?.add(value);
  }

  #hold(timeMs: number, value: number, text: string | null): void {
    this.#isKnown = true;
    this.#held = value;
    this.#heldText = text;
    this.#heldSinceMs = timeMs;
  }

  #endOf(bucket: number): number {
    return this.#parts.buckets.starts[bucket + 1] ?? this.#parts.buckets.endMs;
  }

  #advance(toMs: number): void {
    while (toMs >= this.#nextMs && this.#bucket < this.#parts.buckets.starts.length) {
      if (this.#tracksTime) this.#see(this.#nextMs);
      this.#close();
    }
    if (this.#tracksTime) this.#see(toMs);
  }

  /** Counts the duration of the current value up to this time. */
  #see(toMs: number): void {
    const heldToMs = Math.min(toMs, this.#heldSinceMs + this.#gapMs, this.#parts.holding.untilMs);
    const ms = heldToMs - this.#seenMs;
    this.#seenMs = toMs;
    // NaN if no value holds.
    if (!(ms > 0)) return;
    this.#knownMs += ms;
    if (!Number.isNaN(this.#held)) {
      this.#weighted += this.#held * ms;
      this.#weightedMs += ms;
    }
    this.#parts.functions.forEach((one, index) => {
      if (one.kind !== 'duration' || !isWanted(one.wanted, this.#held, this.#heldText)) return;
      this.#matched[index] = (this.#matched[index] as number) + ms;
    });
  }

  #close(): void {
    const held = this.#numbers === 0 ? this.#heldAtStart() : Number.NaN;
    this.#parts.functions.forEach((one, index) => {
      (this.#results[index] as Float64Array)[this.#bucket] = this.#resultOf(one, index, held);
    });
    this.#closeStore();
    this.#values = this.#numbers = this.#sum = this.#weighted = this.#weightedMs = 0;
    this.#knownMs = this.#pairs = this.#change = this.#rise = this.#changeMs = 0;
    this.#first = this.#last = Number.NaN;
    this.#min = Number.POSITIVE_INFINITY;
    this.#max = Number.NEGATIVE_INFINITY;
    this.#matched.fill(0);
    this.#nextMs = this.#endOf(++this.#bucket);
  }

  /** The number for a bucket without values if `gap` is given; NaN if there is none. */
  #heldAtStart(): number {
    const { buckets, holding } = this.#parts;
    const startMs = Math.max(buckets.starts[this.#bucket] as number, buckets.fromMs);
    const isHeld = startMs - this.#heldSinceMs < this.#gapMs && startMs < holding.untilMs;
    return holding.gapMs !== null && this.#values === 0 && isHeld ? this.#held : Number.NaN;
  }

  #resultOf({ kind }: SeriesFunction, index: number, held: number): number {
    if (kind === 'count') return this.#values;
    if (kind === 'time-weighted-avg') return this.#weightedMs > 0 ? this.#weighted / this.#weightedMs : Number.NaN;
    if (kind === 'duration') return this.#knownMs > 0 ? (this.#matched[index] as number) : Number.NaN;
    if (kind === 'increase') return this.#pairs > 0 ? this.#rise : Number.NaN;
    if (kind === 'rate') return this.#changeMs > 0 ? (this.#rise / this.#changeMs) * 1_000 : Number.NaN;
    if (kind === 'derivative') return this.#changeMs > 0 ? (this.#change / this.#changeMs) * 1_000 : Number.NaN;
    if (kind === 'sum') return this.#numbers > 0 ? this.#sum : Number.NaN;
    if (this.#numbers === 0) return held;
    if (kind === 'avg') return this.#sum / this.#numbers;
    if (kind === 'first') return this.#first;
    if (kind === 'last') return this.#last;
    if (kind === 'min') return this.#min;
    if (kind === 'max') return this.#max;
    // Percentiles follow.
    return Number.NaN;
  }

  #closeStore(): void {
    if (this.#store === null || this.#numbers === 0) return;
    const store = this.#store;
    const bucket = this.#bucket;
    const kept = store.take();
    this.#left.push(this.#findPercentiles(kept.values, bucket, kept.release));
  }

  *#findPercentiles(values: Float64Array, bucket: number, release: () => void): Generator<void, void> {
    for (const [index, one] of this.#parts.functions.entries()) {
      if (one.kind !== 'percentile') continue;
      (this.#results[index] as Float64Array)[bucket] = yield* findPercentile(values, one.share);
    }
    release();
  }
}
