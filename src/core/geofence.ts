/** Geofences: whether a fix is inside, and whether the way between two fixes crosses them. Degrees and metres. Pure. */
import Flatbush from 'flatbush';
import pointInPolygon from 'point-in-polygon-hao';
import { DEGREE_M, longitudeScale } from './geo.js';
import type { Json, JsonObject } from './json.js';
import { isFields } from './position-fields.js';

/** Where an object was, and how exactly that is known; null where it does not say. */
export interface Fix {
  readonly lat: number;
  readonly lon: number;
  readonly accuracyM: number | null;
}

type Point = number[];
type Line = Point[];

/** A part of a geofence: polygons with holes, or lines and points with a distance around them. */
interface Shape {
  readonly polygons: readonly Line[][];
  readonly lines: readonly Line[];
  /** Around the lines; a line without it is only crossed. */
  readonly radiusM: number;
  readonly box: Box;
  /** Half of its smaller extent: a fix that is less exact does not say on which side it is. */
  readonly sizeM: number;
}

interface Box {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

/** One or more geofences as one zone: inside is inside at least one of them. */
export interface Zone {
  /** Null where the fix is less exact than the zone is large. */
  isInside(fix: Fix): boolean | null;
  /** Whether the straight way between the fixes touches the zone. */
  isCrossed(from: Fix, to: Fix): boolean;
  /** How many points of shapes are looked at to find these out, at most. */
  pointsNear(from: Fix, to: Fix): number;
}

const FULL_TURN = 360;
/** The same place, as shapes across the antimeridian have it. */
const TURNS = [0, -FULL_TURN, FULL_TURN];

export function createZone(geofences: readonly JsonObject[]): Zone {
  const shapes = geofences.flatMap(({ geometry, radius }) => toShapes(geometry, radius));
  const find = createFinder(shapes);
  return {
    isInside: (fix) => isInside(find, shapes, fix),
    isCrossed: (from, to) => isCrossed(find, from, to),
    pointsNear: (from, to) => pointsNear(find, from, to),
  };
}

/** A part of a geofence, and its place in a list of them. */
export type FenceShape = Shape & { readonly fence: number };

export const toFenceShapes = ({ geometry, radius }: JsonObject, fence: number): FenceShape[] =>
  toShapes(geometry, radius).map((shape) => ({ ...shape, fence }));

/** Finds which of several geofences a place is inside, by their places in the list. */
export function createFences(
  shapes: readonly FenceShape[],
): (place: { readonly lat: number; readonly lon: number }) => ReadonlySet<number> {
  const find = createFinder(shapes);
  return ({ lat, lon }) => {
    const inside = new Set<number>();
    for (const turn of TURNS) {
      const east = lon + turn;
      for (const shape of find({ west: east, east, south: lat, north: lat })) {
        if (!inside.has(shape.fence) && contains(shape, [east, lat])) inside.add(shape.fence);
      }
    }
    return inside;
  };
}

type Find<One extends Shape = Shape> = (box: Box) => readonly One[];
const FEW = 8;

function createFinder<One extends Shape>(shapes: readonly One[]): Find<One> {
  if (shapes.length <= FEW) return (box) => shapes.filter((shape) => overlaps(shape.box, box));
  const tree = new Flatbush(shapes.length);
  for (const { box } of shapes) tree.add(box.west, box.south, box.east, box.north);
  tree.finish();
  return ({ west, south, east, north }) => tree.search(west, south, east, north).map((index) => shapes[index] as One);
}

const overlaps = (a: Box, b: Box): boolean =>
  a.west <= b.east && b.west <= a.east && a.south <= b.north && b.south <= a.north;

function isInside(find: Find, shapes: readonly Shape[], { lat, lon, accuracyM }: Fix): boolean | null {
  const isClear = ({ sizeM }: Shape): boolean => accuracyM === null || accuracyM <= sizeM;
  let isUnclear = shapes.length === 0 || (accuracyM !== null && !shapes.some(isClear));
  for (const turn of TURNS) {
    const east = lon + turn;
    for (const shape of find({ west: east, east, south: lat, north: lat })) {
      if (!contains(shape, [east, lat])) continue;
      if (isClear(shape)) return true;
      isUnclear = true;
    }
  }
  return isUnclear ? null : false;
}

function contains({ polygons, lines, radiusM }: Shape, point: Point): boolean {
  // 0: on the line.
  if (polygons.some((rings) => pointInPolygon(point, rings) !== false)) return true;
  return radiusM > 0 && lines.some((line) => distanceToLineM(point, line) <= radiusM);
}

function isCrossed(find: Find, from: Fix, to: Fix): boolean {
  return waysBetween(from, to).some(([a, b]) => find(boxOf([a, b])).some((shape) => isTouched(shape, a, b)));
}

function pointsNear(find: Find, from: Fix, to: Fix): number {
  const shapes = waysBetween(from, to).flatMap((way) => find(boxOf([...way])));
  return shapes.reduce((sum, { polygons, lines }) => sum + pointsIn(polygons.flat()) + pointsIn(lines), 0);
}

const pointsIn = (lines: readonly Line[]): number => lines.reduce((sum, line) => sum + line.length, 0);

/** The straight way, on each turn around the globe on which shapes may be. */
function waysBetween(from: Fix, to: Fix): readonly Segment[] {
  const start = [from.lon, from.lat];
  // The shorter way around the globe.
  const end = [nearest(to.lon, from.lon), to.lat];
  return TURNS.map((turn) => [start, end].map(([lon, lat]) => [(lon as number) + turn, lat as number]) as Segment);
}

function isTouched({ polygons, lines, radiusM }: Shape, a: Point, b: Point): boolean {
  const meets = (line: Line): boolean => segmentsOf(line).some(([c, d]) => intersect([a, b], [c, d]));
  if (polygons.some((rings) => rings.some(meets)) || lines.some(meets)) return true;
  return radiusM > 0 && lines.some((line) => line.some((point) => distanceToLineM(point, [a, b]) <= radiusM));
}

type Segment = [Point, Point];

const segmentsOf = (line: Line): Segment[] =>
  line.slice(1).map((point, index): Segment => [line[index] as Point, point]);

function intersect([a, b]: Segment, [c, d]: Segment): boolean {
  const abc = turnOf(a, b, c);
  const abd = turnOf(a, b, d);
  const cda = turnOf(c, d, a);
  const cdb = turnOf(c, d, b);
  if (abc * abd < 0 && cda * cdb < 0) return true;
  return (
    (abc === 0 && isBetween(a, b, c)) ||
    (abd === 0 && isBetween(a, b, d)) ||
    (cda === 0 && isBetween(c, d, a)) ||
    (cdb === 0 && isBetween(c, d, b))
  );
}

const x = (point: Point): number => point[0] as number;
const y = (point: Point): number => point[1] as number;

/** On which side of a line through two points a third one is. */
const turnOf = (a: Point, b: Point, c: Point): number =>
  Math.sign((x(b) - x(a)) * (y(c) - y(a)) - (y(b) - y(a)) * (x(c) - x(a)));

const isBetween = (a: Point, b: Point, c: Point): boolean =>
  Math.min(x(a), x(b)) <= x(c) &&
  x(c) <= Math.max(x(a), x(b)) &&
  Math.min(y(a), y(b)) <= y(c) &&
  y(c) <= Math.max(y(a), y(b));

/** In a plane around the point: exact enough for distances that people draw. */
function distanceToLineM(point: Point, line: Line): number {
  const scale = longitudeScale(y(point));
  const plane = line.map((one) => [(x(one) - x(point)) * scale * DEGREE_M, (y(one) - y(point)) * DEGREE_M]);
  if (plane.length === 1) return Math.hypot(x(plane[0] as Point), y(plane[0] as Point));
  return Math.min(...segmentsOf(plane).map(distanceToOriginM));
}

function distanceToOriginM([a, b]: Segment): number {
  const dx = x(b) - x(a);
  const dy = y(b) - y(a);
  const length = dx * dx + dy * dy;
  const share = length === 0 ? 0 : Math.min(1, Math.max(0, -(x(a) * dx + y(a) * dy) / length));
  return Math.hypot(x(a) + share * dx, y(a) + share * dy);
}

/** The longitude that is nearest to another one, which may be beyond 180 degrees. */
const nearest = (lon: number, to: number): number => lon - FULL_TURN * Math.round((lon - to) / FULL_TURN);

/** Positions that follow each other are never more than half a turn apart: RFC 7946 splits there, but not all do. */
function unrolled(line: readonly Json[]): Line {
  const points: Line = [];
  for (const position of line) {
    const [lon, lat] = position as number[];
    const before = points.at(-1);
    points.push([before === undefined ? (lon as number) : nearest(lon as number, x(before)), lat as number]);
  }
  return points;
}

/** A hole is on the same turn as the ring around it. */
function toPolygon(rings: Json): Line[] {
  const [outer = [], ...holes] = (rings as Json[][]).map(unrolled);
  const middle = (boxOf(outer).west + boxOf(outer).east) / 2;
  return [outer, ...holes.map((hole) => hole.map((point) => [nearest(x(point), middle), y(point)]))];
}

function toShapes(geometry: Json | undefined, radius: Json | undefined): Shape[] {
  if (!isFields(geometry)) return [];
  const radiusM = typeof radius === 'number' ? radius : 0;
  const { type, coordinates } = geometry;
  if (type === 'Polygon') return [toShape([toPolygon(coordinates as Json)], [], 0)];
  if (type === 'MultiPolygon') return (coordinates as Json[]).map((rings) => toShape([toPolygon(rings)], [], 0));
  if (type === 'LineString') return [toShape([], [unrolled(coordinates as Json[])], radiusM)];
  return radiusM > 0 ? [toShape([], [unrolled([coordinates as Json])], radiusM)] : [];
}

function toShape(polygons: Line[][], lines: Line[], radiusM: number): Shape {
  const inner = boxOf([...polygons.flatMap(([outer = []]) => outer), ...lines.flat()]);
  const aroundLat = radiusM / DEGREE_M;
  const steepest = Math.max(
    0.01,
    longitudeScale(Math.min(89, Math.max(Math.abs(inner.south), Math.abs(inner.north)) + aroundLat)),
  );
  const aroundLon = aroundLat / steepest;
  const box = {
    west: inner.west - aroundLon,
    east: inner.east + aroundLon,
    south: inner.south - aroundLat,
    north: inner.north + aroundLat,
  };
  const widthM = (box.east - box.west) * DEGREE_M * longitudeScale((box.south + box.north) / 2);
  const heightM = (box.north - box.south) * DEGREE_M;
  // Around a line the distance is what counts, however long the line is.
  return { polygons, lines, radiusM, box, sizeM: radiusM > 0 ? radiusM : Math.min(widthM, heightM) / 2 };
}

function boxOf(points: readonly Point[]): Box {
  const box = { west: Infinity, south: Infinity, east: -Infinity, north: -Infinity };
  for (const point of points) {
    box.west = Math.min(box.west, x(point));
    box.east = Math.max(box.east, x(point));
    box.south = Math.min(box.south, y(point));
    box.north = Math.max(box.north, y(point));
  }
  return box;
}
