/** Countries that cross the antimeridian. */
import type { FeatureCollection, Geometry, Position } from 'geojson';

const SOUTH_POLE = -90;
/** Below this latitude there is nothing but the pole, along which some outlines lead. */
const POLE_EDGE = -89;

/** Without jumps from one edge of the world to the other: such a line goes on beyond 180 degrees, where maps repeat the world. */
function unwrapLine(line: readonly Position[]): Position[] {
  let turns = 0;
  let before: number | undefined;
  const unwrapped: Position[] = [];
  for (const [lon = 0, lat = 0] of line) {
    if (lat < POLE_EDGE) continue;
    if (before !== undefined && Math.abs(lon - before) > 180) turns += lon < before ? 360 : -360;
    before = lon;
    unwrapped.push([lon + turns, lat]);
  }
  return unwrapped;
}

/** The ring of a country. One that surrounds the pole is closed along it. */
function unwrapRing(ring: readonly Position[]): Position[] {
  const begin = ring.findIndex(([, lat = 0]) => lat >= POLE_EDGE);
  const unwrapped = unwrapLine([...ring.slice(begin), ...ring.slice(1, begin + 1)]);
  const first = unwrapped[0] ?? [];
  const last = unwrapped.at(-1) ?? [];
  if (first[0] === last[0]) return unwrapped;
  return [...unwrapped, [last[0] ?? 0, SOUTH_POLE], [first[0] ?? 0, SOUTH_POLE], first];
}

function unwrapGeometry(geometry: Geometry): Geometry {
  switch (geometry.type) {
    case 'MultiLineString':
      return { ...geometry, coordinates: geometry.coordinates.map(unwrapLine) };
    case 'Polygon':
      return { ...geometry, coordinates: geometry.coordinates.map(unwrapRing) };
    case 'MultiPolygon':
      return { ...geometry, coordinates: geometry.coordinates.map((polygon) => polygon.map(unwrapRing)) };
    default:
      return geometry;
  }
}

/** The outlines of `world-atlas` are those of a globe: on a flat map, Russia would cover the Baltic Sea. */
export const unwrap = (outlines: FeatureCollection): FeatureCollection => ({
  ...outlines,
  features: outlines.features.map((feature) => ({ ...feature, geometry: unwrapGeometry(feature.geometry) })),
});

/** The way from one place to another, in parts of the world's width: never more than half of it. */
export const shortWay = (way: number): number => way - Math.round(way);

const HALF = 0.5;

/** West and east of places in ascending order, from 0 to 1; east is beyond 1 if less than half of the world lies across the antimeridian. */
export function spanOf(places: readonly number[] | Float64Array): [number, number] {
  const west = places[0] ?? 0;
  const east = places.at(-1) ?? 0;
  for (const [index, x] of places.entries()) {
    const next = places[index + 1] ?? x;
    if (next - x > HALF) return [next, x + 1];
  }
  return [west, east];
}
