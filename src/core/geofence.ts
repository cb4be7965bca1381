/** Geofences: whether a fix is inside, and whether the way between two fixes crosses them. Degrees and metres. Pure. */
import Flatbush from 'flatbush';
import { type Box, boxOf, Edges, type Line, type Point } from './edges.js';
import { DEGREE_M, longitudeScale } from './geo.js';
import type { Json, JsonObject } from './json.js';
import { isFields } from './position-fields.js';

/** Where an object was, and how exactly that is known; null where it does not say. */
export interface Fix {
  readonly lat: number;
  readonly lon: number;
  readonly accuracyM: number | null;
}

/** A part of a geofence: a polygon with holes, or a line or point with a distance around it. */
interface Shape {
  readonly isArea: boolean;
  readonly edges: Edges;
  readonly points: number;
  /** Around a line; a line without it is only crossed. */
  readonly radiusM: number;
  /** The same in degrees, at least. */
  readonly aroundLon: number;
  readonly aroundLat: number;
  readonly box: Box;
  /** Half of its smaller extent: a fix that is less exact does not say on which side it is. */
  readonly sizeM: number;
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
  if (!isUnclear && accuracyM !== null) {
    // It may be inside a shape nearby that is smaller than its error.
    const reach = around(toDegrees(accuracyM, lat), boxOf([[lon, lat]]));
    isUnclear = TURNS.some((turn) => find(turned(reach, turn)).some((shape) => !isClear(shape)));
  }
  return isUnclear ? null : false;
}

const turned = ({ west, east, south, north }: Box, turn: number): Box => ({
  west: west + turn,
  east: east + turn,
  south,
  north,
});

/** A distance in degrees, at least, where no place is further from the equator than the latitude. */
function toDegrees(distanceM: number, lat: number): Pick<Shape, 'aroundLon' | 'aroundLat'> {
  const aroundLat = distanceM / DEGREE_M;
  const steepest = Math.max(0.01, longitudeScale(Math.min(89, Math.abs(lat) + aroundLat)));
  return { aroundLon: aroundLat / steepest, aroundLat };
}

function contains(shape: Shape, point: Point): boolean {
  if (shape.isArea) return shape.edges.enclose(point);
  const { edges, radiusM } = shape;
  return radiusM > 0 && edges.some(around(shape, boxOf([point])), (a, b) => distanceM(point, [a, b]) <= radiusM);
}

/** What is at most the radius away from a box. */
const around = ({ aroundLon, aroundLat }: Pick<Shape, 'aroundLon' | 'aroundLat'>, box: Box): Box => ({
  west: box.west - aroundLon,
  south: box.south - aroundLat,
  east: box.east + aroundLon,
  north: box.north + aroundLat,
});

function isCrossed(find: Find, from: Fix, to: Fix): boolean {
  return waysBetween(from, to).some(([a, b]) => find(boxOf([a, b])).some((shape) => isTouched(shape, a, b)));
}

function pointsNear(find: Find, from: Fix, to: Fix): number {
  const shapes = waysBetween(from, to).flatMap((way) => find(boxOf([...way])));
  return shapes.reduce((sum, { points }) => sum + points, 0);
}

/** The straight way, on each turn around the globe on which shapes may be. */
function waysBetween(from: Fix, to: Fix): readonly Segment[] {
  const start = [from.lon, from.lat];
  // The shorter way around the globe.
  const end = [nearest(to.lon, from.lon), to.lat];
  return TURNS.map((turn) => [start, end].map(([lon, lat]) => [(lon as number) + turn, lat as number]) as Segment);
}

function isTouched(shape: Shape, a: Point, b: Point): boolean {
  const { edges, radiusM } = shape;
  const box = boxOf([a, b]);
  if (edges.some(box, (c, d) => intersect([a, b], [c, d]))) return true;
  const isNear = (point: Point): boolean => distanceM(point, [a, b]) <= radiusM;
  return radiusM > 0 && edges.some(around(shape, box), (c, d) => isNear(c) || isNear(d));
}

type Segment = [Point, Point];

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
function distanceM(point: Point, [a, b]: Segment): number {
  const scale = longitudeScale(y(point));
  const inPlane = (one: Point): Point => [(x(one) - x(point)) * scale * DEGREE_M, (y(one) - y(point)) * DEGREE_M];
  return distanceToOriginM([inPlane(a), inPlane(b)]);
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
  const points: Point[] = [];
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
  if (type === 'Polygon') return [toArea(coordinates as Json)];
  if (type === 'MultiPolygon') return (coordinates as Json[]).map(toArea);
  if (type === 'LineString') return [toLine(unrolled(coordinates as Json[]), radiusM)];
  return radiusM > 0 ? [toLine(unrolled([coordinates as Json]), radiusM)] : [];
}

function toArea(rings: Json): Shape {
  const lines = toPolygon(rings);
  const box = boxOf(lines[0] as Line);
  const points = lines.reduce((sum, line) => sum + line.length, 0);
  const edges = new Edges(lines);
  return { isArea: true, edges, points, radiusM: 0, aroundLon: 0, aroundLat: 0, box, sizeM: halfExtentM(box) };
}

function toLine(line: Line, radiusM: number): Shape {
  const inner = boxOf(line);
  const { aroundLon, aroundLat } = toDegrees(radiusM, Math.max(Math.abs(inner.south), Math.abs(inner.north)));
  const box = around({ aroundLon, aroundLat }, inner);
  // Around a line the distance is what counts, however long the line is.
  const sizeM = radiusM > 0 ? radiusM : halfExtentM(box);
  return { isArea: false, edges: new Edges([line]), points: line.length, radiusM, aroundLon, aroundLat, box, sizeM };
}

function halfExtentM({ west, south, east, north }: Box): number {
  const widthM = (east - west) * DEGREE_M * longitudeScale((south + north) / 2);
  return Math.min(widthM, (north - south) * DEGREE_M) / 2;
}
