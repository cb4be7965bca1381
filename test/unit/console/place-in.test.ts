/** The place in last values that came at different times. */
import { expect, test } from '@jest/globals';
import { placeIn } from '../../../src/console/state/places.js';

const MINUTE_MS = 60_000;
const last = (value: unknown, timeMs: number) => ({ value, timeMs });

test.each<[string, Record<string, ReturnType<typeof last>>, object | null]>([
  ['of one packet', { lat: last(10, 5), lon: last(1, 5), speed: last(3, 9) }, { lat: 10, lon: 1, timeMs: 5 }],
  ['of packets in turns', { lat: last(10, 5), lon: last(1, 6) }, { lat: 10, lon: 1, timeMs: 6 }],
  ['of a member', { gps: last({ lat: 10, lon: 1 }, 5) }, { lat: 10, lon: 1, timeMs: 5 }],
  [
    'in the names that came last',
    { lat: last(1, 5), lon: last(1, 5), latitude: last(10, 2 * MINUTE_MS), longitude: last(1, 2 * MINUTE_MS) },
    { lat: 10, lon: 1, timeMs: 2 * MINUTE_MS },
  ],
  [
    'of before something else got such a name',
    { position: last(5, 2 * MINUTE_MS), lat: last(10, 5), lon: last(1, 5) },
    { lat: 10, lon: 1, timeMs: 5 },
  ],
  ['not of halves long apart', { lat: last(10, 5), lon: last(1, 5 + 2 * MINUTE_MS) }, null],
  ['not of 0, 0', { lat: last(0, 5), lon: last(0, 5) }, null],
  ['not of nothing', {}, null],
])('is found in last values %s', (_, values, expected) => {
  expect(placeIn(Object.entries(values))).toEqual(expected);
});
