/** The way of a shared object in the last 24 hours, which goes on as it moves. */
import { useMemo } from 'preact/hooks';
import type { Columns } from '../objects/chart-data.js';
import { numberPathsOf } from '../objects/numbers.js';
import { routeOf, type TrackPoint, type WholeRoute } from '../objects/track.js';
import { useFetched } from '../state/fetched.js';
import { type LastPlace, PLACE_NAMES, positionOf } from '../state/places.js';
import { useSince } from './since.js';
import { connections, type PastSeries, readPast, type SharedView } from './view.js';

const POINTS = 1_000;

/** Null without history, and while it is loaded. */
export function useTrail({ history, values }: SharedView, place: LastPlace | null): WholeRoute | null {
  const paths = numberPathsOf([...values].map(([name, { value }]) => [name, value] as const)).filter(isOfPlace);
  const key = history === 'none' ? '' : JSON.stringify(paths);
  const { points, fetches } = useSince(key === '' ? null : place, key);
  const { data } = useFetched(
    async () => (key === '' || paths.length === 0 ? null : toPlaces(await readPast(paths, POINTS), paths)),
    [key, fetches, connections.value],
  );
  const past = data.value;
  return useMemo(() => {
    if (past === null) return null;
    const lastMs = past.at(-1)?.timeMs ?? 0;
    return routeOf([...past, ...points.filter(({ timeMs }) => timeMs > lastMs)]);
  }, [past, points]);
}

const isOfPlace = (path: string): boolean => PLACE_NAMES.includes(path.split('.').at(-1) ?? '');

/** Where the object was last in each bucket. */
function toPlaces(series: PastSeries, paths: readonly string[]): TrackPoint[] {
  return series.time.flatMap((timeMs, index) => {
    const packet: Fields = {};
    for (const path of paths) {
      const value = (series[path] as Columns | null | undefined)?.last[index];
      if (typeof value === 'number') setAt(packet, path.split('.'), value);
    }
    const position = positionOf({ ...packet, time: timeMs });
    return position === null ? [] : [{ ...position, timeMs }];
  });
}

interface Fields {
  [name: string]: number | Fields;
}

function setAt(fields: Fields, [name = '', ...below]: readonly string[], value: number): void {
  if (below.length === 0) {
    fields[name] = value;
    return;
  }
  const known = fields[name];
  const inner = typeof known === 'object' ? known : {};
  fields[name] = inner;
  setAt(inner, below, value);
}
