/**
 * The position in a packet, in the field names of many devices: one rule for the server, which reads BSON, and for the console, which
 * reads JSON. The first name of a list whose value is a number counts. Latitude and longitude come from the same place: the packet, or
 * else its `position`, `location` or `gps`, whose members follow the same rule.
 */

export const LATITUDE_NAMES = ['lat', 'latitude'];
export const LONGITUDE_NAMES = ['lon', 'lng', 'long', 'longitude'];
/** Members that can contain a position. */
export const CONTAINER_NAMES = ['position', 'location', 'gps'];
/** GeoJSON: longitude, latitude, height. They count where no names do. */
export const COORDINATES_NAME = 'coordinates';

/** The fields of a packet that can contain a place. */
export const PLACE_NAMES: readonly string[] = [
  ...LATITUDE_NAMES,
  ...LONGITUDE_NAMES,
  ...CONTAINER_NAMES,
  COORDINATES_NAME,
];

export type Fields = Readonly<Record<string, unknown>>;

/** In degrees. */
export interface Position {
  readonly lat: number;
  readonly lon: number;
}

/** Whether these degrees are a position. Receivers without a fix send exactly 0, 0. */
export const isPosition = (lat: unknown, lon: unknown): boolean =>
  isWithin(lat, 90) && isWithin(lon, 180) && !(lat === 0 && lon === 0);

const isWithin = (value: unknown, most: number): boolean => typeof value === 'number' && Math.abs(value) <= most;

/** Looks into the packet itself, and then into its members. */
export function findPosition(fields: Fields): Position | null {
  let lat = findNumber(fields, LATITUDE_NAMES);
  let lon = findNumber(fields, LONGITUDE_NAMES);
  const coordinates = fields[COORDINATES_NAME];
  if (!isPosition(lat, lon) && Array.isArray(coordinates)) [lon, lat] = coordinates;
  if (isPosition(lat, lon)) return { lat, lon };
  for (const name of CONTAINER_NAMES) {
    const inner = fields[name];
    const found = isFields(inner) ? findPosition(inner) : null;
    if (found !== null) return found;
  }
  return null;
}

/** The number under the first of these names that counts; NaN if there is none. */
export function findNumber(
  fields: Fields,
  names: readonly string[],
  counts: (value: number) => boolean = () => true,
): number {
  for (const name of names) {
    const value = fields[name];
    if (Number.isFinite(value) && counts(value as number)) return value as number;
  }
  return Number.NaN;
}

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether a field contains a place and nothing else. */
export const isPlaceField = (name: string, value: unknown): boolean =>
  PLACE_NAMES.includes(name) &&
  (isFields(value)
    ? Object.entries(value).every(([inner, one]) => inner === 'type' || isPlaceField(inner, one))
    : typeof value !== 'string' && !CONTAINER_NAMES.includes(name));
