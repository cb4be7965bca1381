/** The edges of geofences: positions are judged as by looking at every edge, and few edges are looked at. */
import { expect, test } from '@jest/globals';
import { Edges, type Point } from '../../src/core/edges.js';
import { createZone } from '../../src/core/geofence.js';
import type { JsonObject } from '../../src/core/json.js';

/** The same numbers in each run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const closed = (points: Point[]): Point[] => [...points, points[0] as Point];

const circle = (count: number, radius: number, [x, y] = [10, 50]): Point[] =>
  closed(
    Array.from({ length: count }, (_, at): Point => {
      const angle = (2 * Math.PI * at) / count;
      return [(x as number) + radius * Math.cos(angle), (y as number) + radius * Math.sin(angle)];
    }),
  );
/** Teeth across the whole shape, in one direction or the other. */
const comb = (teeth: number, swap: boolean): Point[] => {
  const points = Array.from({ length: teeth }, (_, at) => [
    [at, 0],
    [at + 0.5, 9],
  ]).flat();
  const ring = closed([...points, [teeth, -1], [0, -1]]);
  return swap ? ring.map(([x, y]) => [y, x] as Point) : ring;
};
const star = (count: number): Point[] =>
  closed(circle(count, 1).map(([x, y], at) => (at % 2 === 0 ? [x as number, y as number] : [10.001, 50.002])));
const scribble = (count: number, random: () => number): Point[] =>
  closed(Array.from({ length: count }, () => [Math.floor(random() * 12), Math.floor(random() * 12)]));

/** By the definition: how many edges a way to the east meets; every edge is looked at. On an edge is inside. */
function isInside(rings: readonly Point[][], [x, y]: Point): boolean {
  let inside = false;
  for (const ring of rings) {
    for (let at = 1; at < ring.length; at++) {
      const [x1, y1] = ring[at - 1] as [number, number];
      const [x2, y2] = ring[at] as [number, number];
      const side = (x2 - x1) * ((y as number) - y1) - (y2 - y1) * ((x as number) - x1);
      const isWithin = (p: number, a: number, b: number): boolean => Math.min(a, b) <= p && p <= Math.max(a, b);
      if (side === 0 && isWithin(x as number, x1, x2) && isWithin(y as number, y1, y2)) return true;
      const isMet = y1 > (y as number) !== y2 > (y as number);
      if (isMet && side > 0 === y2 > y1) inside = !inside;
    }
  }
  return inside;
}

const random = createRandom(7);
const SHAPES: [name: string, rings: Point[][]][] = [
  [
    'a triangle',
    [
      closed([
        [0, 0],
        [4, 0],
        [0, 4],
      ]),
    ],
  ],
  ['a circle', [circle(900, 1)]],
  ['a ring', [circle(300, 1), circle(300, 0.5)]],
  ['an upright comb', [comb(200, false)]],
  ['a comb that lies', [comb(200, true)]],
  ['a star', [star(400)]],
  [
    'a flat ring',
    [
      closed([
        [0, 1],
        [9, 1],
        [5, 1],
      ]),
    ],
  ],
  [
    'a ring of one place',
    [
      closed([
        [3, 3],
        [3, 3],
        [3, 3],
      ]),
    ],
  ],
  ...Array.from({ length: 40 }, (_, at): [string, Point[][]] => [
    `scribble ${at}`,
    [scribble(3 + at, random), scribble(4, random)],
  ]),
];

test.each(SHAPES)('judge positions in and around %s like all edges together', (_name, rings) => {
  const edges = new Edges(rings);
  const points = rings.flat();
  const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis] as number)) as [number[], number[]];
  const between = (values: number[]): number => {
    const low = Math.min(...values) - 0.5;
    return low + random() * (Math.max(...values) + 0.5 - low);
  };
  const tried: Point[] = [
    // On corners, and beside them on the same line.
    ...points.slice(0, 60),
    ...points.slice(0, 60).map(([x], at): Point => [x as number, ys[(at * 7 + 3) % ys.length] as number]),
    ...Array.from({ length: 300 }, (): Point => [between(xs), between(ys)]),
    ...Array.from({ length: 200 }, (): Point => [Math.floor(between(xs)), Math.floor(between(ys))]),
  ];
  const wrong = tried.filter((point) => edges.enclose(point) !== isInside(rings, point));
  expect(wrong).toEqual([]);
});

test.each([
  ['a winding road', Array.from({ length: 80 }, (_, at): Point => [at / 100, 70 + Math.sin(at / 5) / 20])],
  ['a road that crosses itself', scribble(30, random).map(([x, y]): Point => [(x as number) / 20, (y as number) / 20])],
  ['a road over the antimeridian', Array.from({ length: 40 }, (_, at): Point => [((at / 50 + 359.6) % 360) - 180, 0])],
])('judge positions near %s, and ways over it, like its parts one by one', (_name, line) => {
  const road = (coordinates: Point[]): JsonObject => ({ geometry: { type: 'LineString', coordinates }, radius: 2_000 });
  const whole = createZone([road(line)]);
  const parts = createZone(line.slice(1).map((point, at) => road([line[at] as Point, point])));
  const place = () => {
    const [lon, lat] = line[Math.floor(random() * line.length)] as [number, number];
    return { lon: lon + (random() - 0.5) / 5, lat: lat + (random() - 0.5) / 5, accuracyM: null };
  };
  const places = Array.from({ length: 600 }, place);
  const judge = (zone: typeof whole) => places.map((at) => [zone.isInside(at), zone.isCrossed(at, places[0] ?? at)]);
  expect(judge(whole)).toEqual(judge(parts));
  expect(new Set(judge(whole).map(([isNear]) => isNear)).size).toBe(2);
});

test.each([
  ['a circle', circle(10_000, 1), [11, 50]],
  ['an upright comb', comb(5_000, false), [2_500, 4]],
  ['a comb that lies', comb(5_000, true), [4, 2_500]],
  ['a road to the east', Array.from({ length: 10_000 }, (_, at): Point => [at / 1_000, 50]), [5, 50]],
  ['a road to the north', Array.from({ length: 10_000 }, (_, at): Point => [10, at / 1_000]), [10, 5]],
])('looks at few of 10,000 edges of %s', (_name, line, [x, y]) => {
  const box = {
    west: (x as number) - 1e-4,
    south: (y as number) - 1e-4,
    east: (x as number) + 1e-4,
    north: (y as number) + 1e-4,
  };
  let looks = 0;
  const isMet = new Edges([line]).some(box, () => {
    looks++;
    return false;
  });
  expect(isMet).toBe(false);
  expect(looks).toBeGreaterThan(0);
  expect(looks).toBeLessThan(20);
});
