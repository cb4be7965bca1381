/** The town that says best where a place is, and the way from it. Degrees and metres. Pure. */
import { type Coordinates, DEGREE_M, distanceM } from '../../core/geo.js';
import type { Position } from '../../core/position-fields.js';

export interface Town extends Position {
  readonly name: string;
  readonly people: number;
}

/** A file of towns: columns of those in a cell, from south to north. */
export interface TownColumns {
  readonly names: string;
  /** Other names for readers of a language, by the number of the town. */
  readonly de: Readonly<Record<string, string>>;
  /** Thousandths of a degree. */
  readonly lons: readonly number[];
  /** The same, from the town before. */
  readonly lats: readonly number[];
  /** Ten times their logarithm. */
  readonly people: readonly number[];
}

export interface Near {
  readonly town: Town;
  readonly distanceM: number;
  /** One of eight, from north through east, in which the place is as seen from the town. */
  readonly direction: number;
  /** Whether the place is certainly in the town. */
  readonly isIn: boolean;
}

/** The cells that there are: numbers in rows from the south pole, each row from the antimeridian to the east. */
export interface Grid {
  readonly degrees: number;
  readonly cells: readonly number[];
}

/** Farther from any town, no town says where a place is. */
export const MOST_DISTANCE_M = 300_000;
/** Larger towns are better known: one of 1,000,000 people counts as if it were half as far away, one of 1,000 as far as it is. */
const WEIGHT_POWER = 0.1;
/** Of a town of 25,000,000 people; no town has more. */
const MOST_WEIGHT = 2.76;
/** Where towns have more than 30,000 people on each square kilometre, they reach as far; few do. */
const INSIDE_M = 100;
const LEAST_INSIDE_M = 1_000;
const DIRECTIONS = 8;
const RADIANS = Math.PI / 180;
const THOUSANDTHS = 1_000;

export function toTowns({ names, de, lons, lats, people }: TownColumns, language: string): readonly Town[] {
  let lat = 0;
  return names.split('\n').map((name, index) => {
    lat += lats[index] as number;
    return {
      name: (language === 'de' ? de[index] : undefined) ?? name,
      people: 10 ** ((people[index] as number) / 10),
      lat: lat / THOUSANDTHS,
      lon: (lons[index] as number) / THOUSANDTHS,
    };
  });
}

const toCoordinates = ({ lat, lon }: Position): Coordinates => ({ latitude: lat, longitude: lon });
const byRoot = (people: number, metres: number): number => Math.sqrt(people / 1_000) * metres;
const weightOf = ({ people }: Town): number => Math.min(MOST_WEIGHT, Math.max(1, people / 1_000) ** WEIGHT_POWER);

/** The distance to the nearest place of a cell. */
export function distanceToCellM(place: Position, cell: number, degrees: number): number {
  const columns = 360 / degrees;
  const south = Math.floor(cell / columns) * degrees - 90;
  const west = (cell % columns) * degrees - 180;
  const isBetween = place.lon >= west && place.lon <= west + degrees;
  const lats = [south, south + degrees];
  if (isBetween) {
    const nearest = Math.min(Math.max(place.lat, south), south + degrees);
    return Math.abs(place.lat - nearest) * DEGREE_M;
  }
  const distances = [west, west + degrees].flatMap((lon) => {
    // Where the meridian is nearest, if the cell has this part of it.
    const foot = Math.atan(Math.tan(place.lat * RADIANS) / Math.cos((place.lon - lon) * RADIANS)) / RADIANS;
    const corners = foot > south && foot < south + degrees ? [...lats, foot] : lats;
    return corners.map((lat) => distanceM(toCoordinates(place), { latitude: lat, longitude: lon }));
  });
  return Math.min(...distances);
}

interface Found {
  /** Null where no town is near. */
  readonly near: Near | null;
  /** Cells that must be known before this is certain. */
  readonly missing: readonly number[];
}

/** `townsIn` gives the towns of a cell, or undefined while they are not there. */
export function findNear(place: Position, grid: Grid, townsIn: (cell: number) => readonly Town[] | undefined): Found {
  const cells = grid.cells
    .map((cell) => ({ cell, distanceM: distanceToCellM(place, cell, grid.degrees) }))
    .filter((one) => one.distanceM <= MOST_DISTANCE_M)
    .sort((a, b) => a.distanceM - b.distanceM);
  const missing: number[] = [];
  let best: Best | null = null;
  for (const one of cells) {
    if (best !== null && one.distanceM / MOST_WEIGHT > best.weighedM) break;
    const towns = townsIn(one.cell);
    if (towns !== undefined) best = nearer(place, towns, best);
    else missing.push(one.cell);
    // In most places the cell around them is enough.
    if (towns === undefined && one.distanceM === 0) break;
  }
  return { near: best === null ? null : toNear(place, best.town), missing };
}

interface Best {
  readonly town: Town;
  /** The distance by the weight of the town. */
  readonly weighedM: number;
}

function nearer(place: Position, towns: readonly Town[], before: Best | null): Best | null {
  let best = before;
  const from = toCoordinates(place);
  for (const town of towns) {
    const mostM = Math.min(MOST_DISTANCE_M, best === null ? MOST_DISTANCE_M : best.weighedM * MOST_WEIGHT);
    if (Math.abs(town.lat - place.lat) * DEGREE_M > mostM) continue;
    const farM = distanceM(from, toCoordinates(town));
    const weighedM = farM / weightOf(town);
    if (farM <= MOST_DISTANCE_M && (best === null || weighedM < best.weighedM)) best = { town, weighedM };
  }
  return best;
}

function toNear(place: Position, town: Town): Near {
  const farM = distanceM(toCoordinates(place), toCoordinates(town));
  const turn = (DIRECTIONS * bearingDegrees(town, place)) / 360;
  return {
    town,
    distanceM: farM,
    direction: (Math.round(turn) + DIRECTIONS) % DIRECTIONS,
    isIn: farM <= Math.max(LEAST_INSIDE_M, byRoot(town.people, INSIDE_M)),
  };
}

/** The direction in which the shortest way begins, from north through east: -180 to 180. */
function bearingDegrees(from: Position, to: Position): number {
  const turn = (to.lon - from.lon) * RADIANS;
  const a = from.lat * RADIANS;
  const b = to.lat * RADIANS;
  const east = Math.sin(turn) * Math.cos(b);
  const north = Math.cos(a) * Math.sin(b) - Math.sin(a) * Math.cos(b) * Math.cos(turn);
  return Math.atan2(east, north) / RADIANS;
}
