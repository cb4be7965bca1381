/** The buckets of a series: what the service computed of its packets, and those that came since. Pure. */
import { silenceMsOf } from '../objects/chart-data.js';

type Column = (number | null)[];

/** Columns of equal length, one number for each bucket; null for one without numbers. */
export interface Buckets {
  /** In ms, equally far apart. */
  readonly starts: readonly number[];
  readonly last: Column;
  readonly min: Column;
  readonly max: Column;
  readonly sum: Column;
  readonly count: Column;
  /** The time of the newest number that was added. */
  newestMs: number;
}

/** As a series has them. Its function `count` counts texts, too, of which there is neither a sum nor an average. */
export interface Columns {
  readonly last: Column;
  readonly min: Column;
  readonly max: Column;
  readonly sum: Column;
  readonly avg: Column;
  readonly count: Column;
}

export function toBuckets(starts: readonly number[], { last, min, max, sum, avg, count }: Columns): Buckets {
  const numbers = sum.map((total, at) =>
    avg[at] ? Math.round((total ?? 0) / avg[at]) : total === null ? 0 : (count[at] ?? 0),
  );
  return { starts, last, min, max, sum, count: numbers, newestMs: Number.NEGATIVE_INFINITY };
}

/** Adds a number that came live; false if it is outside of the interval. The service and a live event may both tell it. */
export function addNumber(
  buckets: Buckets,
  endMs: number,
  { timeMs, value }: { timeMs: number; value: number },
): boolean {
  const { starts, last, min, max, sum, count } = buckets;
  const [firstMs = 0, secondMs = endMs] = starts;
  if (starts.length === 0 || timeMs < firstMs || timeMs > endMs) return false;
  const at = Math.min(starts.length - 1, Math.floor((timeMs - firstMs) / (secondMs - firstMs)));
  if (timeMs >= buckets.newestMs || last[at] === null) last[at] = value;
  buckets.newestMs = Math.max(buckets.newestMs, timeMs);
  min[at] = Math.min(min[at] ?? value, value);
  max[at] = Math.max(max[at] ?? value, value);
  sum[at] = (sum[at] ?? 0) + value;
  count[at] = (count[at] ?? 0) + 1;
  return true;
}

export interface Statistics {
  readonly min: number;
  readonly avg: number;
  readonly max: number;
  /** The newest one. */
  readonly last: number;
}

/** Of all numbers of the interval; null without any. */
export function statisticsOf(buckets: Buckets): Statistics | null {
  const { starts, last, min, max, sum, count: counts } = buckets;
  let count = 0;
  let total = 0;
  let newest = Number.NaN;
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (let at = 0; at < starts.length; at++) {
    const value = last[at] ?? null;
    if (value === null) continue;
    newest = value;
    least = Math.min(least, min[at] ?? value);
    most = Math.max(most, max[at] ?? value);
    total += sum[at] ?? 0;
    count += counts[at] ?? 0;
  }
  return count === 0 ? null : { min: least, avg: total / count, max: most, last: newest };
}

/** What a chart draws: undefined joins the values beside it, null breaks the line. */
export interface Line {
  readonly values: readonly (number | null | undefined)[];
  readonly low: readonly (number | null | undefined)[];
  readonly high: readonly (number | null | undefined)[];
  /** Whether one point stands for different numbers. */
  readonly isRange: boolean;
  /** Where a number stands alone: no line leads to it. */
  readonly singles: readonly number[];
}

/** Buckets that are closer than this are joined, even if there is none between them. */
const GAP_BUCKETS = 4;

export function toLine({ starts, last, min, max }: Buckets): Line {
  const present = [...starts.keys()].filter((at) => (last[at] ?? null) !== null);
  const times = present.map((at) => starts[at] as number);
  const bucketMs = (starts[1] ?? 0) - (starts[0] ?? 0);
  const gapMs = Math.max(silenceMsOf(times), GAP_BUCKETS * bucketMs);
  const values: (number | null | undefined)[] = new Array(starts.length).fill(undefined);
  const low = [...values];
  const high = [...values];
  const isBreak = (index: number): boolean =>
    index === present.length || (times[index] as number) - (times[index - 1] ?? Number.NEGATIVE_INFINITY) > gapMs;
  const singles: number[] = [];
  let isRange = false;
  for (const [index, at] of present.entries()) {
    values[at] = last[at] as number;
    low[at] = min[at] ?? values[at];
    high[at] = max[at] ?? values[at];
    isRange ||= (low[at] as number) < (high[at] as number);
    if (!isBreak(index + 1)) continue;
    if (isBreak(index)) singles.push(at);
    // For so long it holds.
    const end = at + Math.floor(gapMs / bucketMs) + 1;
    if (end < starts.length) values[end] = low[end] = high[end] = null;
  }
  return { values, low, high, isRange, singles };
}

/** The number that holds at a point; null before the first one, and while the object was silent. */
export function valueAt({ values }: Line, at: number): number | null {
  for (let index = at; index >= 0; index--) {
    const value = values[index];
    if (value !== undefined) return value;
  }
  return null;
}
