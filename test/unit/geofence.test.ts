/** Geofences: fixes inside and outside, ways that cross, and fixes that are less exact than the geofence. */
import { describe, expect, test } from '@jest/globals';
import { createZone, type Fix } from '../../src/core/geofence.js';
import type { Json, JsonObject } from '../../src/core/json.js';

const box = (west: number, south: number, east: number, north: number): Json[] => [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
  [west, south],
];
const polygon = (...rings: Json[][]): JsonObject => ({ geometry: { type: 'Polygon', coordinates: rings } });
const SQUARE = polygon(box(10, 50, 11, 51));
const RING = polygon(box(10, 50, 11, 51), box(10.4, 50.4, 10.6, 50.6));
const CIRCLE: JsonObject = { geometry: { type: 'Point', coordinates: [10, 50] }, radius: 100 };
const ROAD: JsonObject = {
  geometry: {
    type: 'LineString',
    coordinates: [
      [10, 50],
      [11, 50],
    ],
  },
};
const ACROSS = polygon(box(179, -1, -179, 1));
/** Just east of the antimeridian. */
const TINY = polygon(box(-179.9999, -0.0005, -179.999, 0.0005));
const SPLIT: JsonObject = {
  geometry: { type: 'MultiPolygon', coordinates: [[box(179, -1, 180, 1)], [box(-180, -1, -179, 1)]] },
};
const fix = (lat: number, lon: number, accuracyM: number | null = null): Fix => ({ lat, lon, accuracyM });

describe('a fix', () => {
  test.each<[about: string, geofences: JsonObject[], at: Fix, inside: boolean | null]>([
    ['in a polygon', [SQUARE], fix(50.5, 10.5), true],
    ['on its border', [SQUARE], fix(50.5, 10), true],
    ['beside it', [SQUARE], fix(50.5, 11.01), false],
    ['in a hole', [RING], fix(50.5, 10.5), false],
    ['between a hole and the border', [RING], fix(50.5, 10.2), true],
    ['in a circle', [CIRCLE], fix(50.0008, 10), true],
    ['beside a circle', [CIRCLE], fix(50.001, 10), false],
    ['east of a circle, where degrees are short', [CIRCLE], fix(50, 10.0013), true],
    ['near a road with a distance', [{ ...ROAD, radius: 50 }], fix(50.0004, 10.5), true],
    ['too far from it', [{ ...ROAD, radius: 50 }], fix(50.0006, 10.5), false],
    ['on a line without one', [ROAD], fix(50, 10.5), false],
    ['across the antimeridian, east', [ACROSS], fix(0, 179.5), true],
    ['across the antimeridian, west', [ACROSS], fix(0, -179.5), true],
    ['on the other side of the earth', [ACROSS], fix(0, 0), false],
    ['in two parts at the antimeridian', [SPLIT], fix(0, -179.5), true],
    ['in one of two', [SQUARE, CIRCLE], fix(50.0008, 10), true],
    ['in none of two', [SQUARE, CIRCLE], fix(60, 10), false],
    ['without any area', [{ geometry: null }], fix(50, 10), null],
    ['of a point without a radius', [{ geometry: { type: 'Point', coordinates: [10, 50] } }], fix(50, 10), null],
    ['less exact than the circle', [CIRCLE], fix(50, 10, 150), null],
    ['less exact than the circle, outside', [CIRCLE], fix(50.001, 10, 150), null],
    ['as exact as the circle', [CIRCLE], fix(50, 10, 100), true],
    ['inexact, but in a large one', [SQUARE, CIRCLE], fix(50.5, 10.5, 150), true],
    ['inexact, in the small one of two', [polygon(box(20, 50, 21, 51)), CIRCLE], fix(50, 10, 150), null],
    ['inexact, near the small one of two', [polygon(box(20, 50, 21, 51)), CIRCLE], fix(50.0021, 10, 150), null],
    ['inexact, west of a small one', [SQUARE, TINY], fix(0, 179.9995, 150), null],
    ['inexact, in none of two', [polygon(box(20, 50, 21, 51)), CIRCLE], fix(55, 10, 150), false],
  ])('judges one %s', (_about, geofences, at, inside) => expect(createZone(geofences).isInside(at)).toBe(inside));

  test('is found among many', () => {
    const many = Array.from({ length: 1_000 }, (_, index) => polygon(box(index / 10, 50, index / 10 + 0.05, 51)));
    const zone = createZone(many);
    expect([0.01, 0.06, 99.92, 99.98].map((lon) => zone.isInside(fix(50.5, lon)))).toEqual([true, false, true, false]);
  });
});

describe('a way', () => {
  test.each<[about: string, geofence: JsonObject, from: Fix, to: Fix, crossed: boolean]>([
    ['through a polygon', SQUARE, fix(50.5, 9), fix(50.5, 12), true],
    ['past it', SQUARE, fix(52, 9), fix(52, 12), false],
    ['through a circle', CIRCLE, fix(50.0005, 9.99), fix(50.0005, 10.01), true],
    ['past it', CIRCLE, fix(50.002, 9.99), fix(50.002, 10.01), false],
    ['over a line', ROAD, fix(49.9, 10.5), fix(50.1, 10.5), true],
    ['over the antimeridian', polygon(box(179.9, -1, 180, 1)), fix(0, 179), fix(0, -179), true],
    ['over the antimeridian, the other way', polygon(box(-180, -1, -179.9, 1)), fix(0, -179), fix(0, 179), true],
    ['the long way around', SQUARE, fix(50.5, 179), fix(50.5, -179), false],
  ])('judges one %s', (_about, geofence, from, to, crossed) => {
    expect(createZone([geofence]).isCrossed(from, to)).toBe(crossed);
  });
});
