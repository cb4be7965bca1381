/** Days, and the trips and stops of a track as the console shows them. */
import { execFileSync } from 'node:child_process';
import { describe, expect, test } from '@jest/globals';
import { routeOfTrip, skipStops, toCsv, toLegs } from '../../../src/console/objects/trips.js';

/** The time zone of a process is the one with which it begins. */
function daysIn(zone: string, now: string, days: string, firstDay: number): string[] {
  const script = `import { daysAt } from './src/console/objects/days.ts';
    const { fromMs, toMs } = daysAt(${Date.parse(now)}, '${days}', ${firstDay});
    console.log(JSON.stringify([fromMs, toMs].map((ms) => new Date(ms).toISOString())));`;
  const args = ['--import', 'tsx', '--input-type=module', '-e', script];
  return JSON.parse(execFileSync(process.execPath, args, { env: { ...process.env, TZ: zone }, encoding: 'utf8' }));
}

describe('whole days', () => {
  test.each([
    // In the night of 29 March 2026 clocks are put forward in Berlin: the day has 23 hours.
    ['Europe/Berlin', '2026-03-29T10:00Z', 'today', '2026-03-28T23:00:00.000Z', '2026-03-29T21:59:59.999Z'],
    ['Europe/Berlin', '2026-03-30T10:00Z', 'yesterday', '2026-03-28T23:00:00.000Z', '2026-03-29T21:59:59.999Z'],
    ['Europe/Berlin', '2026-10-25T10:00Z', 'today', '2026-10-24T22:00:00.000Z', '2026-10-25T22:59:59.999Z'],
    ['Pacific/Auckland', '2026-01-01T05:00Z', 'yesterday', '2025-12-30T11:00:00.000Z', '2025-12-31T10:59:59.999Z'],
    ['America/Los_Angeles', '2026-01-01T05:00Z', 'today', '2025-12-31T08:00:00.000Z', '2026-01-01T07:59:59.999Z'],
    ['Europe/Berlin', '2026-03-29T10:00Z', 'week', '2026-03-22T23:00:00.000Z', '2026-03-29T21:59:59.999Z'],
  ] as const)('are those of %s at %s: %s', (zone, now, days, from, to) => {
    expect(daysIn(zone, now, days, 1)).toEqual([from, to]);
  });

  test('are a week from Sunday or Saturday where weeks begin so', () => {
    const sunday = '2026-11-29T10:00Z';
    expect(daysIn('UTC', sunday, 'week', 0)).toEqual(['2026-11-29T00:00:00.000Z', '2026-12-05T23:59:59.999Z']);
    expect(daysIn('UTC', sunday, 'week', 6)).toEqual(['2026-11-28T00:00:00.000Z', '2026-12-04T23:59:59.999Z']);
    expect(daysIn('UTC', sunday, 'week', 1)).toEqual(['2026-11-23T00:00:00.000Z', '2026-11-29T23:59:59.999Z']);
  });
});

const at = [11, 48];
const trip = (from: number, to: number) => ({ from, to, distance: 1_500, start: at, end: [12, 49] });
const legs = toLegs(
  {
    distance: 0,
    movingTime: 0,
    maxSpeed: null,
    trips: [trip(0, 10), trip(20, 30), trip(100, 110)],
    stops: [
      { from: 10, to: 20, coordinates: at },
      { from: 30, to: 95, coordinates: at },
    ],
  },
  (ms) => String(Math.floor(ms / 50)),
);

test('counts the trips of each day, between the stops', () => {
  expect(legs.map(({ kind, number, fromMs }) => [kind, number, fromMs])).toEqual([
    ['trip', 1, 0],
    ['stop', 0, 10],
    ['trip', 2, 20],
    ['stop', 0, 30],
    ['trip', 1, 100],
  ]);
});

test('goes from a stop, or from a silence, to the next trip, and from the last trip to the end', () => {
  const moments = [5, 10, 15, 25, 40, 97, 105, 110, 200];
  expect(moments.map((ms) => skipStops(legs, ms))).toEqual([5, 20, 20, 25, 100, 100, 105, 110, 200]);
  expect(skipStops([], 7)).toBe(7);
});

test('has the line of a trip from its start to its end, across the antimeridian too', () => {
  const points = [179.5, 180.5, 181].map((lon, index) => ({ timeMs: index * 10, lat: 0, lon }));
  const leg = {
    kind: 'trip',
    number: 1,
    fromMs: 5,
    toMs: 15,
    distanceM: 1,
    start: [179.7, 0],
    end: [-179.2, 0],
  } as const;
  expect(routeOfTrip({ points, lines: [] }, leg).lines).toEqual([
    [
      [179.7, 0],
      [180.5, 0],
      [expect.closeTo(180.8), 0],
    ],
  ]);
});

test('writes a line of CSV for each, in UTC', () => {
  expect(toCsv(legs.slice(0, 2)).split('\r\n')).toEqual([
    'kind,from,to,seconds,metres,start_latitude,start_longitude,end_latitude,end_longitude',
    'trip,1970-01-01T00:00:00.000Z,1970-01-01T00:00:00.010Z,0,1500,48,11,49,12',
    'stop,1970-01-01T00:00:00.010Z,1970-01-01T00:00:00.020Z,0,0,48,11,48,11',
    '',
  ]);
});
