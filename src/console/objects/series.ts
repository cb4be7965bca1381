/** The history of parameters in as many points as a chart has room for. */
import { call, toQuery } from '../state/api.js';
import { type ChartData, type Columns, toCharts } from './chart-data.js';
import type { IntervalMs } from './interval.js';

interface Series {
  readonly time: readonly number[];
  readonly [parameter: string]: unknown;
}

const POINTS = 600;

export async function fetchSeries(
  objectId: string,
  names: readonly string[],
  { fromMs, toMs }: IntervalMs,
): Promise<ReadonlyMap<string, ChartData>> {
  if (names.length === 0) return new Map();
  const wanted = { params: names.join(','), from: fromMs, to: toMs, points: POINTS, fn: 'last,min,max' };
  const series = await call<Series>('GET', `/objects/${objectId}/series${toQuery(wanted)}`);
  const columns = names.flatMap((name) => {
    const found = series[name] as Columns | null | undefined;
    return found ? [[name, found] as const] : [];
  });
  return toCharts(series.time, new Map(columns), (toMs - fromMs) / POINTS);
}
