/** The way of an object as lines on a map. */
import { expect, test } from '@jest/globals';
import { routeOfFeature, type TrackPoint, toLines, unwrapTrack } from '../../../src/console/objects/track.js';

const MINUTE_MS = 60_000;
const every = (minutes: number, ...lons: number[]): TrackPoint[] =>
  lons.map((lon, index) => ({ timeMs: index * minutes * MINUTE_MS, lat: 0, lon }));
const lonsOf = (lines: [number, number][][]) => lines.map((line) => line.map(([lon]) => lon));

test('joins places that a device reports every four hours', () => {
  expect(lonsOf(toLines(every(240, 1, 2, 3, 4)))).toEqual([[1, 2, 3, 4]]);
});

test('breaks the line where a device was silent for longer than it usually is', () => {
  const points = [...every(1, 1, 2, 3), ...every(1, 4, 5).map((one) => ({ ...one, timeMs: one.timeMs + 3_600_000 }))];
  expect(lonsOf(toLines(points))).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
});

test('joins places less than a quarter of an hour apart, whatever is usual', () => {
  const points = [...every(1, 1, 2, 3), { timeMs: 16 * MINUTE_MS, lat: 0, lon: 4 }];
  expect(lonsOf(toLines(points))).toEqual([[1, 2, 3, 4]]);
});

test('goes on beyond the antimeridian, in both directions', () => {
  const lons = [178, 179.5, -179, -178, 179, -178];
  const east = [178, 179.5, 181, 182, 179, 182];
  expect(unwrapTrack(every(1, ...lons)).map(({ lon }) => lon)).toEqual(east);
  const west = unwrapTrack(every(1, ...lons.map((lon) => -lon)));
  expect(west.map(({ lon }) => lon)).toEqual(east.map((lon) => -lon));
});

test('takes the lines of a simplified track as they are, across the antimeridian too', () => {
  const geometry = {
    type: 'MultiLineString',
    coordinates: [
      [
        [179, 1],
        [180, 1],
      ],
      [
        [-180, 1],
        [-178, 2],
      ],
    ],
  } as const;
  const times = [
    [0, 1_000],
    [2_000, 90_000_000],
  ];
  expect(routeOfFeature({ geometry, properties: { times } })).toEqual({
    points: [
      { timeMs: 0, lon: 179, lat: 1 },
      { timeMs: 1_000, lon: 180, lat: 1 },
      { timeMs: 2_000, lon: 180, lat: 1 },
      { timeMs: 90_000_000, lon: 182, lat: 2 },
    ],
    lines: [
      [
        [179, 1],
        [180, 1],
      ],
      [
        [180, 1],
        [182, 2],
      ],
    ],
  });
});

test('has no points where no positions are connected', () =>
  expect(routeOfFeature({ geometry: null, properties: { times: [] } })).toEqual({ points: [], lines: [] }));
