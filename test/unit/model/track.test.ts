/** The line of a track keeps its shape, and its stops and trips are those of the positions. */
import { describe, expect, test } from '@jest/globals';
import { distanceM } from '../../../src/core/geo.js';
import { TrackLine, type TrackPoint } from '../../../src/history/track-line.js';
import { type Stop, type Trip, TripFinder } from '../../../src/history/trips.js';
import { fc } from '../../support/runs.js';

type Position = readonly [longitude: number, latitude: number, isConnected?: boolean];

function simplify(positions: readonly Position[], points: number): TrackPoint[][] {
  const line = new TrackLine(points);
  const reduce = (most: number): void => {
    while (line.length > most) {
      for (const [from, to] of line.blocks()) line.measure(from, to);
      line.keep(line.sizeToKeep(most));
    }
  };
  for (const [at, [longitude, latitude, isConnected = true]] of positions.entries()) {
    if (line.isFull()) reduce(line.capacity / 2);
    line.add(longitude, latitude, at, isConnected && at > 0);
  }
  reduce(points);
  return line.pieces();
}

/** Douglas and Peucker as they are taught: the points that stay within a tolerance. */
function naive(positions: readonly Position[], toleranceM: number): Position[] {
  const first = positions[0] as Position;
  const last = positions.at(-1) as Position;
  let index = 0;
  let most = -1;
  for (let at = 1; at < positions.length - 1; at++) {
    const away = fromSegment(positions[at] as Position, first, last);
    if (away > most) [index, most] = [at, away];
  }
  if (most <= toleranceM) return [first, last];
  return [
    ...naive(positions.slice(0, index + 1), toleranceM).slice(0, -1),
    ...naive(positions.slice(index), toleranceM),
  ];
}

/** On the equator a degree is as long in both directions. */
function fromSegment([x, y]: Position, [x0, y0]: Position, [x1, y1]: Position): number {
  const square = (x1 - x0) ** 2 + (y1 - y0) ** 2;
  const along = square === 0 ? 0 : Math.min(1, Math.max(0, ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / square));
  return Math.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0)) * 111_195.08;
}

describe('a line', () => {
  test('keeps the same points as Douglas-Peucker, for any number of points', () => {
    const position = fc.tuple(fc.integer({ min: -900, max: 900 }), fc.integer({ min: -9, max: 9 }));
    fc.assert(
      fc.property(
        fc.array(position, { minLength: 2, maxLength: 60 }),
        fc.integer({ min: 1, max: 300 }),
        (some, metres) => {
          const positions = some.map(([x, y]) => [x / 1e4, y / 1e4] as const);
          const kept = naive(positions, metres);
          const [piece = []] = simplify(positions, kept.length);
          expect(piece.map(([x, y]) => [x, y])).toEqual(kept);
        },
      ),
    );
  });

  test('stays near to all of many positions', () => {
    const circle = Array.from({ length: 50_000 }, (_, nth): Position => {
      const angle = (nth / 50_000) * 2 * Math.PI;
      return [Math.cos(angle), Math.sin(angle)];
    });
    const [piece = []] = simplify(circle, 100);
    expect(piece).toHaveLength(100);
    // A hundred points of a circle of 111 km: the arrows are 55 m high at best.
    for (const [at, [x, y]] of piece.entries()) {
      const [nextX, nextY] = piece[at + 1] ?? [x, y];
      expect((1 - Math.hypot((x + nextX) / 2, (y + nextY) / 2)) * 111_195).toBeLessThan(250);
    }
  });

  test('has a piece for each interval without a gap, and keeps the longest ones', () => {
    const far: Position[] = [
      [1, 1, false],
      [1.5, 1],
      [2, 1],
    ];
    const near: Position[] = [
      [5, 5, false],
      [5.001, 5],
      [9, 9, false],
    ];
    expect(simplify([...near, ...far], 100).map((piece) => piece.map(([x]) => x))).toEqual([
      [5, 5.001],
      [1, 1.5, 2],
    ]);
    expect(simplify([...near, ...far], 2).map((piece) => piece.map(([x]) => x))).toEqual([[1, 2]]);
  });

  test('is cut at the antimeridian', () => {
    expect(
      simplify(
        [
          [179, 10],
          [-179, 12],
          [179, 14],
        ],
        10,
      ),
    ).toEqual([
      [
        [179, 10, 0],
        [180, 11, 1],
      ],
      [
        [-180, 11, 1],
        [-179, 12, 1],
        [-180, 13, 2],
      ],
      [
        [180, 13, 2],
        [179, 14, 2],
      ],
    ]);
  });
});

describe('trips', () => {
  const MINUTE = 60_000;
  const rules = { stopMs: 5 * MINUTE, stopRadiusM: 100, gapMs: 15 * MINUTE };

  function find(positions: readonly (readonly [minute: number, longitude: number])[]) {
    const stops: Stop[] = [];
    const trips: Trip[] = [];
    const finder = new TripFinder(
      rules,
      (stop) => stops.push(stop),
      (trip) => trips.push(trip),
    );
    for (const [minute, longitude] of positions) {
      finder.add({ longitude, latitude: 0, timeMs: minute * MINUTE, speed: Number.NaN });
    }
    finder.finish();
    const minutes = ({ fromMs, toMs }: Stop | Trip) => [fromMs / MINUTE, toMs / MINUTE];
    return {
      stops: stops.map(minutes),
      trips: trips.map(minutes),
      metres: trips.map((trip) => Math.round(trip.distanceM)),
    };
  }
  /** From a minute on, one position each, a hundredth of a degree further each time. */
  const drive = (from: number, to: number, start = from) =>
    Array.from({ length: to - from + 1 }, (_, at) => [from + at, (start + at) / 100] as const);

  test('lie between stops, without the noise of a standing receiver', () => {
    const stand = Array.from({ length: 29 }, (_, at) => [11 + at, 0.1 + (at % 2) / 2_000] as const);
    const found = find([...drive(0, 10), ...stand, ...drive(40, 50, 11)]);
    expect(found).toEqual({
      stops: [[10, 39]],
      trips: [
        [0, 10],
        [39, 50],
      ],
      metres: [11_120, 12_231],
    });
  });

  test('end at a gap, unless the object is still at the same place', () => {
    expect(find([...drive(0, 5), ...drive(60, 65)])).toMatchObject({
      stops: [],
      trips: [
        [0, 5],
        [60, 65],
      ],
    });
    expect(find([...drive(0, 5), ...drive(60, 65, 5)])).toMatchObject({
      stops: [[5, 60]],
      trips: [
        [0, 5],
        [60, 65],
      ],
    });
  });

  test('do not exist for an object that never moves', () => {
    expect(find([[0, 5]])).toEqual({ stops: [], trips: [], metres: [] });
    expect(
      find([
        [0, 5],
        [1, 5.0001],
        [9, 5],
      ]),
    ).toEqual({ stops: [[0, 9]], trips: [], metres: [] });
  });
});

test('computes distances on a sphere', () => {
  const vienna = { longitude: 16.3738, latitude: 48.2082 };
  const linz = { longitude: 14.2858, latitude: 48.3069 };
  expect(Math.round(distanceM(vienna, linz) / 100)).toBe(1_550);
  expect(distanceM({ longitude: 179.5, latitude: 0 }, { longitude: -179.5, latitude: 0 })).toBeCloseTo(111_195, 0);
});
