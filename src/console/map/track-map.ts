/** A map with the way that one object took, and where it was at one moment. */
import { type GeoJSONSource, type Map as GlMap, LngLatBounds } from 'maplibre-gl';
import { type BaseMapOptions, createBaseMap } from './base-map.js';
import { CLOSE_ZOOM } from './camera.js';
import { STYLE, TILES_URL } from './own-map.js';

/** In degrees; the longitude may lie beyond 180. */
interface Place {
  readonly lat: number;
  readonly lon: number;
}

const EMPTY = { type: 'FeatureCollection', features: [] } as const;
/** Outlines and towns alone say nothing closer than this. */
const BEGIN_ZOOM = STYLE === null && TILES_URL === null ? 8 : CLOSE_ZOOM + 2;
const COLORS = { light: '#2449c4', dark: '#8fabff' };

interface TrackMapOptions extends BaseMapOptions {
  /** How to zoom and move the map; the page scrolls without that. */
  readonly help: { readonly wheel: string; readonly wheelOnMac: string; readonly finger: string };
}

export type TrackMap = ReturnType<typeof createTrackMap>;

export function createTrackMap(container: HTMLElement, { help, ...options }: TrackMapOptions) {
  const texts = {
    'CooperativeGesturesHandler.WindowsHelpText': help.wheel,
    'CooperativeGesturesHandler.MacHelpText': help.wheelOnMac,
    'CooperativeGesturesHandler.MobileHelpText': help.finger,
  };
  const base = createBaseMap(container, { ...options, texts, isEndless: true });
  const { map } = base;
  // A wheel and a single finger scroll the page.
  map.cooperativeGestures.enable();
  const loaded = base.loaded.then(() => addLayers(map, options.isDark));
  const show = (name: string, geometry: object): void => {
    const data = { type: 'Feature', properties: {}, geometry } as never;
    void loaded.then(() => map.getSource<GeoJSONSource>(name)?.setData(data));
  };
  return {
    /** Goes to a place without a track. */
    begin: ({ lat, lon }: Place): void => void map.jumpTo({ center: [lon, lat], zoom: BEGIN_ZOOM }),
    setTrack(places: readonly Place[], lines: readonly (readonly [number, number][])[]): void {
      show('track', { type: 'MultiLineString', coordinates: lines });
      const bounds = places.reduce((all, { lon, lat }) => all.extend([lon, lat]), new LngLatBounds());
      if (places.length > 0) map.fitBounds(bounds, { padding: 40, maxZoom: 15, duration: 0 });
    },
    setPlace({ lat, lon }: Place, isFollowed: boolean): void {
      show('place', { type: 'Point', coordinates: [lon, lat] });
      const bounds = map.getBounds();
      const isSeen = [-360, 0, 360].some((turn) => bounds.contains([lon + turn, lat]));
      if (isFollowed && !isSeen) map.jumpTo({ center: [lon, lat] });
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
    id: 'track',
    type: 'line',
    source: 'track',
    layout: { 'line-cap': 'round', 'line-join': 'round' },
    paint: { 'line-color': color, 'line-width': 3.5, 'line-opacity': 0.85 },
  });
  map.addLayer({
    id: 'place',
    type: 'circle',
    source: 'place',
    paint: { 'circle-radius': 7, 'circle-color': color, 'circle-stroke-color': '#fff', 'circle-stroke-width': 2.5 },
  });
}
