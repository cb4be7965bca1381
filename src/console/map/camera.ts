/** Where a map begins, and how close it comes. */

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
