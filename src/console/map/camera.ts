/** Where a map begins, and what it shows then. */
import { toX, toY } from './mercator.js';

/** The size of the world at zoom 0, as maps of tiles count it. */
export const WORLD_PX = 512;
/** How all objects are shown. */
export const FIT = { padding: 60, maxZoom: 13 };
export const MIN_ZOOM = 1;
/** At least as close as this is a selected object shown. */
export const CLOSE_ZOOM = 11;
/** Without objects. */
export const FIRST_PLACE: MapPlace = { lat: 49, lon: 11, zoom: 3.5 };

/** The middle of the map, and its zoom. */
export interface MapPlace {
  readonly lat: number;
  readonly lon: number;
  readonly zoom: number;
}

/** The middle of the window in parts of the world, and its zoom. */
export interface Camera {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

/** In parts of the world. */
export interface Extent {
  readonly west: number;
  readonly north: number;
  readonly east: number;
  readonly south: number;
}

export interface WindowSize {
  readonly widthPx: number;
  readonly heightPx: number;
}

export const cameraOf = ({ lat, lon, zoom }: MapPlace): Camera => ({ x: toX(lon), y: toY(lat), zoom });

/** The camera with which MapLibre would show all of an extent. */
export function cameraFor({ west, north, east, south }: Extent, { widthPx, heightPx }: WindowSize): Camera {
  const zoomOf = (lengthPx: number, length: number): number =>
    Math.log2(Math.max(1, lengthPx - 2 * FIT.padding) / (WORLD_PX * length));
  const zoom = Math.max(MIN_ZOOM, Math.min(FIT.maxZoom, zoomOf(widthPx, east - west), zoomOf(heightPx, south - north)));
  // The window does not reach beyond the poles.
  const half = Math.min(0.5, heightPx / 2 / (WORLD_PX * 2 ** zoom));
  const y = Math.max(half, Math.min(1 - half, (north + south) / 2));
  return { x: (west + east) / 2, y, zoom };
}
