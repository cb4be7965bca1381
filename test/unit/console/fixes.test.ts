/** Since when an object is in a geofence, as far as its last fixes tell. */
import { expect, test } from '@jest/globals';
import { addFix, findSince, type TimedFix } from '../../../src/console/where/fixes.js';

const at = (timeMs: number, lat: number): TimedFix => ({ timeMs, lat, lon: 10 });
const isNorth = ({ lat }: TimedFix): boolean => lat > 50;

test.each<[about: string, fixes: TimedFix[], isWhole: boolean, expected: [number, boolean]]>([
  ['the first fix after the last one outside', [at(1, 51), at(2, 49), at(3, 51), at(4, 52)], false, [3, false]],
  ['the first fix of all', [at(1, 51), at(2, 52)], true, [1, false]],
  ['at least the first of the last fixes', [at(1, 51), at(2, 52)], false, [1, true]],
])('is since %s', (_about, fixes, isWhole, expected) => {
  expect(findSince(fixes, isNorth, isWhole)).toEqual({ timeMs: expected[0], isAtLeast: expected[1] });
});

test('is unknown while the last fix is outside, and without fixes', () => {
  expect(findSince([at(1, 51), at(2, 49)], isNorth, true)).toBeNull();
  expect(findSince([], isNorth, true)).toBeNull();
});

test('keeps fixes in the order of their times, each once, and the newest ones', () => {
  const fixes = [at(3, 1), at(1, 2), at(2, 3), at(2, 4), at(4, 5)].reduce<readonly TimedFix[]>(
    (all, fix) => addFix(all, fix, 3),
    [],
  );
  expect(fixes.map(({ timeMs, lat }) => [timeMs, lat])).toEqual([
    [2, 3],
    [3, 1],
    [4, 5],
  ]);
});
