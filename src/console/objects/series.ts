/** The history of parameters in as many points as a chart has room for. */
import { request } from '../state/api.js';
import { type ChartData, type Columns, findDensePart, toCharts } from './chart-data.js';
import type { IntervalMs } from './days.js';

const POINTS = 600;

/** For data in a small part of the interval, only of that part: the axes of charts end where their data ends. */
export async function fetchSeries(
  objectId: string,
  names: readonly string[],
  { fromMs, toMs }: IntervalMs,
  isPart = false,
): Promise<ReadonlyMap<string, ChartData>> {
  if (names.length === 0) return new Map();
  const query = {
    params: names,
    from: new Date(fromMs),
    to: new Date(toMs),
    points: POINTS,
    fn: ['last', 'min', 'max'],
  };
  const series = await request('GET /api/v1/objects/{id}/series', { path: { id: objectId }, query });
  const columns = new Map(
    names.flatMap((name) => {
      const found = series[name] as Columns | null | undefined;
      return found ? [[name, found] as const] : [];
    }),
  );
  const bucketMs = (toMs - fromMs) / POINTS;
  const part = isPart ? null : findDensePart(series.time, [...columns.values()], toMs - fromMs);
  if (part === null) return toCharts(series.time, columns, bucketMs);
  // The last bucket ends one later than it begins.
  const ofPart = { fromMs: part[0], toMs: Math.min(toMs, part[1] + Math.ceil(bucketMs)) };
  return fetchSeries(objectId, names, ofPart, true);
}
