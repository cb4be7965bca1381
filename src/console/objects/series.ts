/** The history of parameters in as many points as a chart has room for. */
import { call, toQuery } from '../state/api.js';
import type { ChartData } from './chart.js';
import type { IntervalMs } from './interval.js';

type Column = readonly (number | null)[];
interface Series {
  readonly time: readonly number[];
  readonly [parameter: string]: unknown;
}

const POINTS = 600;
/** A line between values that are further apart than this would say what nobody knows. */
const GAP_MS = 15 * 60_000;
const GAP_BUCKETS = 4;

export async function fetchSeries(
  objectId: string,
  names: readonly string[],
  { fromMs, toMs }: IntervalMs,
): Promise<ReadonlyMap<string, ChartData>> {
  if (names.length === 0) return new Map();
  const wanted = { params: names.join(','), from: fromMs, to: toMs, points: POINTS, fn: 'last,min,max' };
  const series = await call<Series>('GET', `/objects/${objectId}/series${toQuery(wanted)}`);
  const gapMs = Math.max(GAP_MS, (GAP_BUCKETS * (toMs - fromMs)) / POINTS);
  const found = names.flatMap((name) => {
    const columns = series[name] as Record<'last' | 'min' | 'max', Column> | null | undefined;
    return columns ? [[name, toChart(series.time, columns, gapMs)] as const] : [];
  });
  return new Map(found);
}

/** Empty buckets are left out, so that a line joins its points; after a longer silence it breaks. */
function toChart(
  times: readonly number[],
  { last, min, max }: Record<'last' | 'min' | 'max', Column>,
  gapMs: number,
): ChartData {
  const chart = {
    times: [] as number[],
    values: [] as (number | null)[],
    range: { low: [] as (number | null)[], high: [] as (number | null)[] },
  };
  const add = (timeMs: number, values: readonly (number | null | undefined)[]): void => {
    const [value = null, low = null, high = null] = values;
    chart.times.push(timeMs / 1_000);
    chart.values.push(value);
    chart.range.low.push(low);
    chart.range.high.push(high);
  };
  let beforeMs: number | null = null;
  for (const [index, timeMs] of times.entries()) {
    if (typeof last[index] !== 'number') continue;
    if (beforeMs !== null && timeMs - beforeMs > gapMs) add(beforeMs + 1, []);
    add(timeMs, [last[index], min[index], max[index]]);
    beforeMs = timeMs;
  }
  return chart;
}
