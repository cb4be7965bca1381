/** Geometries of GeoJSON (RFC 7946) that say where something is: longitude before latitude, in degrees. */
import { z } from 'zod';

const longitude = z.number().min(-180).max(180);
const latitude = z.number().min(-90).max(90);
const position = z.union(
  [z.tuple([longitude, latitude]), z.tuple([longitude, latitude, z.number()])],
  'expected a position: longitude, latitude, and perhaps a height',
);
const ring = z.array(position).min(4).refine(isClosed, 'expected a ring: its last position is the first one again');
const polygon = z.array(ring).min(1);

/** A closed line, as RFC 7946, 3.1.6 has it. */
function isClosed(positions: readonly (readonly number[])[]): boolean {
  const first = positions[0];
  const last = positions.at(-1);
  return first !== undefined && last !== undefined && first.every((value, index) => value === last[index]);
}

/** The area, line or point of a geofence. A circle is a `Point` with a `radius` in metres beside it. */
export const geometry = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('Point'), coordinates: position }),
  z.looseObject({ type: z.literal('LineString'), coordinates: z.array(position).min(2) }),
  z.looseObject({ type: z.literal('Polygon'), coordinates: polygon }),
  z.looseObject({ type: z.literal('MultiPolygon'), coordinates: z.array(polygon).min(1) }),
]);
