/** Distances on the globe. Degrees and metres. */
const EARTH_RADIUS_M = 6_371_008.8;
const RADIANS = Math.PI / 180;

export interface Coordinates {
  readonly longitude: number;
  readonly latitude: number;
}

/** The metres of a degree of latitude. */
export const DEGREE_M = EARTH_RADIUS_M * RADIANS;

/** The distance over the surface of a sphere: half a percent from the ellipsoid at most. */
export function distanceM(a: Coordinates, b: Coordinates): number {
  const sinLatitude = Math.sin(((b.latitude - a.latitude) * RADIANS) / 2);
  const sinLongitude = Math.sin(((b.longitude - a.longitude) * RADIANS) / 2);
  const across = Math.cos(a.latitude * RADIANS) * Math.cos(b.latitude * RADIANS) * sinLongitude ** 2;
  return 2 * EARTH_RADIUS_M * Math.asin(Math.min(1, Math.sqrt(sinLatitude ** 2 + across)));
}

/** How much shorter a degree of longitude is at this latitude. */
export const longitudeScale = (latitude: number): number => Math.cos(latitude * RADIANS);
