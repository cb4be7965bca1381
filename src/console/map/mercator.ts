/** Web Mercator: the world as a square from 0 to 1, as maps of tiles show it. */

/** Where the square ends, in degrees. */
const MAX_LATITUDE = 85.051129;
const QUARTER = Math.PI / 4;

/** From west to east. */
export const toX = (lon: number): number => (lon + 180) / 360;

/** From north to south. */
export function toY(lat: number): number {
  const inside = Math.max(-MAX_LATITUDE, Math.min(MAX_LATITUDE, lat));
  return (1 - Math.log(Math.tan(QUARTER + (inside * Math.PI) / 360)) / Math.PI) / 2;
}

export const toLon = (x: number): number => x * 360 - 180;

export const toLat = (y: number): number => ((Math.atan(Math.exp((1 - 2 * y) * Math.PI)) - QUARTER) * 360) / Math.PI;
