/** The simulated drive: what its packets say agrees with where they are. */
import { expect, test } from '@jest/globals';
import { packetAt, ROUND_S } from '../../../src/console/welcome/route.js';

const KM_PER_DEGREE = 111.32;

/** The speed of the way between two packets that are a second apart. */
function speedBetween(one: Record<string, number>, next: Record<string, number>): number {
  const lat = one.lat ?? 0;
  const lon = one.lon ?? 0;
  const north = ((next.lat ?? 0) - lat) * KM_PER_DEGREE;
  const east = ((next.lon ?? 0) - lon) * KM_PER_DEGREE * Math.cos((lat * Math.PI) / 180);
  return Math.hypot(north, east) * 3_600;
}

test.each([0, 1, 77, 240, 500, 900])('drives as fast as its packets say, at second %d', (second) => {
  const here = packetAt(second);
  const next = packetAt(second + 1);
  expect(Math.abs(speedBetween(here, next) - (here.speed ?? 0))).toBeLessThan(2);
});

test('drives as fast as a car does in a town', () => {
  const speeds = Array.from({ length: ROUND_S }, (_, second) => packetAt(second).speed ?? 0);
  expect(Math.min(...speeds)).toBeGreaterThan(30);
  expect(Math.max(...speeds)).toBeLessThan(100);
});
