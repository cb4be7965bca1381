/** The points of charts, from the columns of a series. */
export interface ChartData {
  /** In seconds, ascending. */
  readonly times: readonly number[];
  readonly values: readonly (number | null)[];
  /** The least and the greatest value where one point stands for many. */
  readonly range?: { readonly low: readonly (number | null)[]; readonly high: readonly (number | null)[] };
}

export type Column = readonly (number | null)[];
export type Columns = Readonly<Record<'last' | 'min' | 'max', Column>>;

/** A line between values that are further apart than all of these would say what nobody knows. */
const GAP_MS = 15 * 60_000;
const GAP_BUCKETS = 4;
const GAP_DISTANCES = 3;

/**
 * Charts with the same first and last time, so that they can lie below each other. Empty buckets are left out, so that a line joins
 * the points beside them; where a device was silent for longer than it usually is, it breaks. `times` in ms, `bucketMs` apart.
 */
export function toCharts(
  times: readonly number[],
  columns: ReadonlyMap<string, Columns>,
  bucketMs: number,
): ReadonlyMap<string, ChartData> {
  const isThere = (index: number): boolean => [...columns.values()].some(({ last }) => typeof last[index] === 'number');
  const present = [...times.keys()].filter(isThere);
  const ends = [...new Set([present[0], present.at(-1)])];
  const leastGapMs = Math.max(GAP_MS, GAP_BUCKETS * bucketMs);
  return new Map([...columns].map(([name, one]) => [name, toChart(times, one, { ends, leastGapMs })]));
}

function toChart(
  times: readonly number[],
  { last, min, max }: Columns,
  { ends, leastGapMs }: { ends: readonly (number | undefined)[]; leastGapMs: number },
): ChartData {
  const chart = {
    times: [] as number[],
    values: [] as (number | null)[],
    range: { low: [] as (number | null)[], high: [] as (number | null)[] },
  };
  const add = (timeMs: number, [value, low, high]: readonly (number | null | undefined)[]): void => {
    chart.times.push(timeMs / 1_000);
    chart.values.push(value ?? null);
    chart.range.low.push(low ?? null);
    chart.range.high.push(high ?? null);
  };
  const shown = times.filter((_, index) => typeof last[index] === 'number');
  const gapMs = Math.max(leastGapMs, GAP_DISTANCES * usualDistanceMs(shown));
  let beforeMs = Number.NaN;
  for (const [index, timeMs] of times.entries()) {
    const isValue = typeof last[index] === 'number';
    if (!isValue && !ends.includes(index)) continue;
    if (timeMs - beforeMs > gapMs) add(beforeMs + 1, []);
    add(timeMs, [last[index], min[index], max[index]]);
    beforeMs = isValue ? timeMs : Number.NaN;
  }
  return chart;
}

/** Data in less than this part of an interval deserves points of its own. */
const SPARSE = 1 / 4;

/** The first and the last of the times with a value, if they lie in a small part of the interval. `times` in ms. */
export function findDensePart(
  times: readonly number[],
  columns: readonly Columns[],
  lengthMs: number,
): readonly [firstMs: number, lastMs: number] | null {
  const present = times.filter((_, index) => columns.some(({ last }) => typeof last[index] === 'number'));
  const first = present[0];
  const last = present.at(-1);
  return first !== undefined && last !== undefined && last - first < SPARSE * lengthMs ? [first, last] : null;
}

/** A line between values that are further apart would say what nobody knows. */
export const silenceMsOf = (times: readonly number[]): number =>
  Math.max(GAP_MS, GAP_DISTANCES * usualDistanceMs(times));

/** The median of the distances between neighbours. */
function usualDistanceMs(times: readonly number[]): number {
  const distances = times.slice(1).map((timeMs, index) => timeMs - (times[index] as number));
  return distances.sort((a, b) => a - b)[Math.floor(distances.length / 2)] ?? 0;
}

/** The indices of the values that no line joins with another one; null without any. */
export function findSingle(values: ArrayLike<unknown>): number[] | null {
  const isThere = (index: number): boolean => typeof values[index] === 'number';
  const all = Array.from({ length: values.length }, (_, index) => index);
  const found = all.filter((index) => isThere(index) && !isThere(index - 1) && !isThere(index + 1));
  return found.length === 0 ? null : found;
}
