/** The projection of maps. */
import { expect, test } from '@jest/globals';
import { toLat, toLon, toX, toY } from '../../../src/console/map/mercator.js';

test.each([
  [0, 0, 0.5, 0.5],
  [-180, 85.051129, 0, 0],
  [180, -85.051129, 1, 1],
  [13.4, 52.5, 0.537222, 0.328046],
])('puts longitude %d and latitude %d at %d, %d', (lon, lat, x, y) => {
  expect(toX(lon)).toBeCloseTo(x, 6);
  expect(toY(lat)).toBeCloseTo(y, 6);
  expect(toLon(x)).toBeCloseTo(lon, 3);
  expect(toLat(y)).toBeCloseTo(lat, 3);
});

test('has no place beyond the ends of the map', () => {
  expect(toY(90)).toBeCloseTo(0, 6);
  expect(toY(-90)).toBeCloseTo(1, 6);
});
