/** The trips and stops of an object, as its track has them. */
import type { IntervalMs } from './days.js';
import { type TrackPoint, unwrapTrack, type WholeRoute } from './track.js';

type Position = readonly number[];

/** As the service finds them. */
export interface TrackProperties {
  readonly distance: number;
  readonly movingTime: number;
  readonly maxSpeed: number | null;
  readonly stops?: readonly { readonly from: number; readonly to: number; readonly coordinates: Position }[];
  readonly trips?: readonly {
    readonly from: number;
    readonly to: number;
    readonly distance: number;
    readonly start: Position;
    readonly end: Position;
  }[];
}

export interface Leg extends IntervalMs {
  readonly kind: 'trip' | 'stop';
  /** Counts the trips of a day, in the order of time; 0 for a stop. */
  readonly number: number;
  /** 0 for a stop. */
  readonly distanceM: number;
  readonly start: Position;
  readonly end: Position;
}

/** In the order of time. `dayOf` gives the day of a moment where the reader is. */
export function toLegs({ stops = [], trips = [] }: TrackProperties, dayOf: (ms: number) => string): Leg[] {
  let day = '';
  let number = 0;
  const counted = trips.map(({ from, to, distance, start, end }): Leg => {
    number = dayOf(from) === day ? number + 1 : 1;
    day = dayOf(from);
    return { kind: 'trip', number, fromMs: from, toMs: to, distanceM: distance, start, end };
  });
  const stood = stops.map(
    ({ from, to, coordinates }): Leg => ({
      kind: 'stop',
      number: 0,
      fromMs: from,
      toMs: to,
      distanceM: 0,
      start: coordinates,
      end: coordinates,
    }),
  );
  return [...counted, ...stood].sort((one, other) => one.fromMs - other.fromMs || one.toMs - other.toMs);
}

/** The same moment if the object was on a trip, otherwise the beginning of the next one; the moment itself after the last. */
export function skipStops(legs: readonly Leg[], timeMs: number): number {
  const next = legs.find(({ kind, toMs }) => kind === 'trip' && toMs > timeMs);
  return next === undefined ? timeMs : Math.max(timeMs, next.fromMs);
}

/** The way of a trip, with its ends: a line that the service has simplified may have no point of them. */
export function routeOfTrip({ points }: WholeRoute, { fromMs, toMs, start, end }: Leg): WholeRoute {
  const toPoint = ([lon = 0, lat = 0]: Position, timeMs: number): TrackPoint => ({ timeMs, lat, lon });
  const between = points.filter(({ timeMs }) => timeMs > fromMs && timeMs < toMs);
  const all = unwrapTrack([toPoint(start, fromMs), ...between, toPoint(end, toMs)]);
  return { points: all, lines: [all.map(({ lon, lat }): [number, number] => [lon, lat])] };
}

const COLUMNS = 'kind,from,to,seconds,metres,start_latitude,start_longitude,end_latitude,end_longitude';

/** A line for each, with times in UTC. */
export function toCsv(legs: readonly Leg[]): string {
  const lines = legs.map(({ kind, fromMs, toMs, distanceM, start, end }) =>
    [
      kind,
      new Date(fromMs).toISOString(),
      new Date(toMs).toISOString(),
      Math.round((toMs - fromMs) / 1_000),
      distanceM,
      start[1],
      start[0],
      end[1],
      end[0],
    ].join(),
  );
  return `${[COLUMNS, ...lines].join('\r\n')}\r\n`;
}
