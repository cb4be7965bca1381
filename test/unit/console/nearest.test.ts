/** The nearest town: the built cells against all towns at once, around the globe, its poles and the antimeridian; and its words' parts. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import {
  distanceToCellM,
  findNear,
  type Grid,
  MOST_DISTANCE_M,
  type Near,
  type Town,
  type TownColumns,
  toTowns,
} from '../../../src/console/where/nearest.js';
import { distanceM } from '../../../src/core/geo.js';

const FOLDER = 'dist/console';
const FILE = /^near-\w+-(\d+)\.json$/;
/** In degrees of latitude, of which none is shorter than 110 km: towns beyond it are too far, on every meridian. */
const MOST_DISTANCE_DEGREES = MOST_DISTANCE_M / 110_000;
/** The sum of all cells, and the largest of them, as browsers receive them over plain HTTP. */
const ALL_BYTES = 1_350_000;
const CELL_BYTES = 120_000;

const names = readdirSync(FOLDER).filter((name) => FILE.test(name));
const read = (name: string): TownColumns => JSON.parse(readFileSync(`${FOLDER}/${name}`, 'utf8'));
const numberOf = (name: string): number => Number(FILE.exec(name)?.[1]);
const cells = new Map(names.map((name) => [numberOf(name), toTowns(read(name), 'en')]));
const grid: Grid = { degrees: 10, cells: [...cells.keys()] };
const all = [...cells.values()].flat();

function nearestOf(lat: number, lon: number, known: ReadonlyMap<number, readonly Town[]> = cells): Near | null {
  const { near, missing } = findNear({ lat, lon }, grid, (cell) => known.get(cell));
  expect(missing).toEqual([]);
  return near;
}

const words = (near: Near | null): unknown =>
  near && [near.town.name, Math.round(near.distanceM / 1_000), near.direction, near.isIn];

test.each<[about: string, lat: number, lon: number, expected: unknown]>([
  ['south-west of a small town', 48.24, 11.41, ['Dachau', 3, 5, false]],
  ['in a small town', 48.2605, 11.435, ['Dachau', 0, 1, true]],
  ['in a city, away from its middle', 48.155, 11.56, ['Munich', 2, 7, true]],
  ['at sea', 48.4, -6.1, ['Brest', 119, 6, false]],
  ['on the ocean', -40, -120, null],
  ['at the north pole', 90, 0, null],
  ['at the south pole', -90, 0, null],
])('says where a place is %s', (_about, lat, lon, expected) => {
  expect(words(nearestOf(lat, lon))).toEqual(expected);
});

test('finds a town on the other side of the antimeridian', () => {
  const east = nearestOf(-16.8, 179.99);
  const west = nearestOf(-16.8, -179.99);
  expect(east?.town.name).toBe(west?.town.name);
  const alone: Grid = { degrees: 10, cells: [648 / 2] };
  const island: Town = { name: 'Island', people: 1_000, lat: 0.5, lon: -179.9 };
  const { near } = findNear({ lat: 0.5, lon: 179.9 }, alone, () => [island]);
  expect(words(near)).toEqual(['Island', 22, 6, false]);
});

test('finds what a search through all towns finds, with no more cells than there are around a place', () => {
  const weightOf = ({ people }: Town): number => Math.max(1, people / 1_000) ** 0.1;
  const farM = (town: Town, lat: number, lon: number): number =>
    distanceM({ latitude: lat, longitude: lon }, { latitude: town.lat, longitude: town.lon });
  const places = Array.from({ length: 60 }, (_, index): [number, number] => {
    // Around the borders of cells of the whole globe, near towns and far from them.
    const town = all[(index * 7_919) % all.length] as Town;
    const lat = index % 2 === 0 ? Math.round(town.lat / 10) * 10 - 0.05 : town.lat + 0.3;
    const lon = index % 3 === 0 ? Math.round(town.lon / 10) * 10 + 0.05 : town.lon + 0.4;
    return [Math.max(-90, Math.min(90, lat)), lon > 180 ? lon - 360 : lon];
  });
  for (const [lat, lon] of places) {
    let best: Town | undefined;
    let leastM = Infinity;
    for (const town of all) {
      if (town.lat < lat - MOST_DISTANCE_DEGREES || town.lat > lat + MOST_DISTANCE_DEGREES) continue;
      const townM = farM(town, lat, lon);
      if (townM > MOST_DISTANCE_M || townM / weightOf(town) >= leastM) continue;
      best = town;
      leastM = townM / weightOf(town);
    }
    expect([lat, lon, nearestOf(lat, lon)?.town]).toEqual([lat, lon, best]);
  }
});

test('asks for the cell around a place first, and for others only where a town of theirs may be nearer', () => {
  const missingOf = (lat: number, lon: number, known: readonly number[]): readonly number[] =>
    findNear({ lat, lon }, grid, (cell) => (known.includes(cell) ? cells.get(cell) : undefined)).missing;
  const [munich] = missingOf(48.28, 11.46, []);
  expect(missingOf(48.28, 11.46, [])).toHaveLength(1);
  expect(missingOf(48.28, 11.46, [munich as number])).toEqual([]);
  const [first] = missingOf(48.28, 10.001, []);
  expect(missingOf(48.28, 10.001, [first as number])).toHaveLength(1);
});

test('measures the distance to a cell from within, beside, across the antimeridian and from a pole', () => {
  const toCellM = (lat: number, lon: number, row: number, column: number): number =>
    Math.round(distanceToCellM({ lat, lon }, row * 36 + column, 10) / 1_000);
  expect(toCellM(5, 5, 9, 18)).toBe(0);
  expect(toCellM(11, 5, 9, 18)).toBe(111);
  expect(toCellM(0.5, 179, 9, 0)).toBe(111);
  expect(toCellM(90, 77, 16, 3)).toBe(1_112);
  expect(toCellM(-90, 77, 0, 30)).toBe(0);
  // The meridian is nearest north of the parallel on which the place is.
  expect(toCellM(75, 30, 16, 19)).toBe(286);
});

test('has the names that readers of German know', () => {
  const name = names.find((one) => read(one).names.split('\n').includes('Munich')) as string;
  const german = toTowns(read(name), 'de').map((town) => town.name);
  expect(german).toEqual(expect.arrayContaining(['München', 'Venedig', 'Dachau']));
  expect(german).not.toContain('Munich');
});

test('keeps the files of towns within their budget', () => {
  const sizes = names.map((name) => readFileSync(`${FOLDER}/${name}.gz`).length);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(CELL_BYTES);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(ALL_BYTES);
});
