/** The trips of objects, and their stops: one row for each. */
import type { Coordinates } from '../core/geo.js';
import type { Stop, Trip, TripRules } from '../history/trips.js';
import { POSITION_FIELDS } from '../packets/position.js';
import type { ReportInterval } from './interval.js';
import { Movement, type MovementEvents } from './movement.js';
import type { Cell, Column, Reading, Report, Row } from './report.js';

const TRIP_COLUMNS: readonly Column[] = [
  { name: 'from', unit: 'time' },
  { name: 'to', unit: 'time' },
  { name: 'duration', unit: 'ms', total: 'sum' },
  { name: 'distance', unit: 'm', total: 'sum' },
  { name: 'averageSpeed', unit: 'km/h' },
  { name: 'maxSpeed', unit: 'km/h', total: 'max' },
  { name: 'start', unit: 'place' },
  { name: 'end', unit: 'place' },
];

const STOP_COLUMNS: readonly Column[] = [
  { name: 'from', unit: 'time' },
  { name: 'to', unit: 'time' },
  { name: 'duration', unit: 'ms', total: 'sum' },
  { name: 'place', unit: 'place' },
];

export const tripsReport = (interval: ReportInterval, rules: TripRules): Report => ({
  name: 'trips',
  needs: 'track',
  interval,
  columns: TRIP_COLUMNS,
  fields: POSITION_FIELDS,
  open:
    () =>
    (_object, { countRow }) =>
      createReading(rules, countRow, (add) => ({ onTrip: (trip) => add(toTripRow(trip)) })),
});

export const stopsReport = (interval: ReportInterval, rules: TripRules): Report => ({
  name: 'stops',
  needs: 'track',
  interval,
  columns: STOP_COLUMNS,
  fields: POSITION_FIELDS,
  open:
    () =>
    (_object, { countRow }) =>
      createReading(rules, countRow, (add) => ({ onStop: (stop) => add(toStopRow(stop)) })),
});

function createReading(
  rules: TripRules,
  countRow: () => void,
  listen: (add: (row: Row) => void) => MovementEvents,
): Reading {
  const rows: Row[] = [];
  const movement = new Movement(
    rules,
    listen((row) => {
      countRow();
      rows.push(row);
    }),
  );
  return {
    take: (memory, starts) => movement.take(memory, starts),
    finish() {
      movement.finish();
      return rows;
    },
  };
}

const KMH_PER_MS = 3.6;

function toTripRow({ fromMs, toMs, distanceM, maxSpeed, start, end }: Trip): Row {
  const duration = toMs - fromMs;
  const kmh = (distanceM / duration) * 1_000 * KMH_PER_MS;
  return {
    from: fromMs,
    to: toMs,
    duration,
    distance: distanceM,
    averageSpeed: duration > 0 ? Math.round(kmh * 10) / 10 : null,
    maxSpeed,
    start: toPlace(start),
    end: toPlace(end),
  };
}

const toStopRow = ({ fromMs, toMs, ...place }: Stop): Row => ({
  from: fromMs,
  to: toMs,
  duration: toMs - fromMs,
  place: toPlace(place),
});

/** Seven decimals are a centimetre. */
const toPlace = ({ longitude, latitude }: Coordinates): Cell => [
  Math.round(longitude * 1e7) / 1e7,
  Math.round(latitude * 1e7) / 1e7,
];
