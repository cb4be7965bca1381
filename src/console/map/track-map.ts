/** A map with the way that one object took, and where it was at one moment. */
import { type GeoJSONSource, type Map as GlMap, LngLatBounds } from 'maplibre-gl';
import { type BaseMapOptions, createBaseMap } from './base-map.js';

export interface TrackPoint {
  readonly timeMs: number;
  readonly lat: number;
  readonly lon: number;
}

/** A line between places that are further apart in time than this says nothing about the way. */
const LONGEST_GAP_MS = 15 * 60_000;
const EMPTY = { type: 'FeatureCollection', features: [] } as const;
const COLORS = { light: '#2449c4', dark: '#8fabff' };

export type TrackMap = ReturnType<typeof createTrackMap>;

export function createTrackMap(container: HTMLElement, options: BaseMapOptions) {
  const base = createBaseMap(container, options);
  const { map } = base;
  const loaded = base.loaded.then(() => addLayers(map, options.isDark));
  const show = (name: string, geometry: object): void => {
    const data = { type: 'Feature', properties: {}, geometry } as never;
    void loaded.then(() => map.getSource<GeoJSONSource>(name)?.setData(data));
  };
  return {
    setTrack(points: readonly TrackPoint[]): void {
      show('track', { type: 'MultiLineString', coordinates: toLines(points) });
      const bounds = points.reduce((all, { lon, lat }) => all.extend([lon, lat]), new LngLatBounds());
      if (points.length > 0) map.fitBounds(bounds, { padding: 40, maxZoom: 15, duration: 0 });
    },
    setPlace(point: TrackPoint, isFollowed: boolean): void {
      const place: [number, number] = [point.lon, point.lat];
      show('place', { type: 'Point', coordinates: place });
      if (isFollowed && !map.getBounds().contains(place)) map.jumpTo({ center: place });
    },
    setDark: base.setDark,
    remove: (): void => map.remove(),
  };
}

function addLayers(map: GlMap, isDark: boolean): void {
  const color = COLORS[isDark ? 'dark' : 'light'];
  map.addSource('track', { type: 'geojson', data: EMPTY as never });
  map.addSource('place', { type: 'geojson', data: EMPTY as never });
  map.addLayer({
    ...{ id: 'track', type: 'line', source: 'track', layout: { 'line-cap': 'round', 'line-join': 'round' } },
    paint: { 'line-color': color, 'line-width': 3.5, 'line-opacity': 0.85 },
  });
  map.addLayer({
    ...{ id: 'place', type: 'circle', source: 'place' },
    paint: { 'circle-radius': 7, 'circle-color': color, 'circle-stroke-color': '#fff', 'circle-stroke-width': 2.5 },
  });
}

function toLines(points: readonly TrackPoint[]): [number, number][][] {
  const lines: [number, number][][] = [];
  let beforeMs = Number.NEGATIVE_INFINITY;
  for (const { timeMs, lon, lat } of points) {
    if (timeMs - beforeMs > LONGEST_GAP_MS) lines.push([]);
    lines.at(-1)?.push([lon, lat]);
    beforeMs = timeMs;
  }
  return lines.filter(({ length }) => length > 1);
}
