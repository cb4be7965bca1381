/** Geofences as shapes on a map. A circle is stored as a point with a radius, and drawn as a polygon with many corners. */
import type { Feature, Geometry, Polygon, Position } from 'geojson';
import type { Geofence } from '../state/geofences.js';

const EARTH_M = 6_371_008.8;
const CORNERS = 64;
const RADIANS = Math.PI / 180;

/** What is drawn of a geofence; null if it has no shape. */
export function toFeature({ _id, name = '', geometry, radius }: Geofence): Feature | null {
  if (geometry === undefined || geometry === null) return null;
  const isCircle = geometry.type === 'Point' && typeof radius === 'number' && radius > 0;
  return {
    type: 'Feature',
    properties: { _id, name },
    geometry: isCircle ? toCircle(geometry.coordinates, radius) : geometry,
  };
}

/** The corners of a circle on the globe. */
export function toCircle([lon = 0, lat = 0]: Position, radiusM: number): Polygon {
  const distance = radiusM / EARTH_M;
  const sin = Math.sin(lat * RADIANS);
  const cos = Math.cos(lat * RADIANS);
  const ring = Array.from({ length: CORNERS }, (_, corner): Position => {
    const bearing = (-2 * Math.PI * corner) / CORNERS;
    const sinLat = sin * Math.cos(distance) + cos * Math.sin(distance) * Math.cos(bearing);
    const east = Math.atan2(Math.sin(bearing) * Math.sin(distance) * cos, Math.cos(distance) - sin * sinLat);
    return [lon + east / RADIANS, Math.asin(sinLat) / RADIANS];
  });
  return { type: 'Polygon', coordinates: [[...ring, ring[0] as Position]] };
}

export interface Shape {
  readonly geometry: Geometry;
  readonly radius?: number;
}

/** The circle whose corners these are: its centre with six digits, a tenth of a metre. */
export function fromCircle({ coordinates: [ring = []] }: Polygon): Shape {
  const corners = ring.slice(1);
  const middle = (axis: 0 | 1): number => {
    const values = corners.map((corner) => corner[axis] as number);
    return (Math.min(...values) + Math.max(...values)) / 2;
  };
  const center: Position = [round(middle(0)), round(middle(1))];
  const radiusM = corners.reduce((sum, corner) => sum + distanceM(center, corner), 0) / corners.length;
  return { geometry: { type: 'Point', coordinates: center }, radius: Math.round(radiusM) };
}

const round = (degrees: number): number => Math.round(degrees * 1e6) / 1e6;

/** A drawn shape, with six digits. */
export function rounded<T extends Geometry>(geometry: T): T {
  const walk = (value: unknown): unknown => (Array.isArray(value) ? value.map(walk) : round(value as number));
  return { ...geometry, coordinates: walk((geometry as Polygon).coordinates) };
}

export function distanceM([lon1 = 0, lat1 = 0]: Position, [lon2 = 0, lat2 = 0]: Position): number {
  const north = ((lat2 - lat1) * RADIANS) / 2;
  const east = ((lon2 - lon1) * RADIANS) / 2;
  const chord = Math.sin(north) ** 2 + Math.cos(lat1 * RADIANS) * Math.cos(lat2 * RADIANS) * Math.sin(east) ** 2;
  return 2 * EARTH_M * Math.asin(Math.min(1, Math.sqrt(chord)));
}

/** Every position of a shape, for its bounds. */
export function positionsOf(geometry: Geometry): Position[] {
  if (geometry.type === 'GeometryCollection') return [];
  const walk = (value: unknown): Position[] => {
    if (!Array.isArray(value)) return [];
    return typeof value[0] === 'number' ? [value as Position] : value.flatMap(walk);
  };
  return walk(geometry.coordinates);
}
