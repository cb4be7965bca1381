/** Draws geofences beneath the objects of a map. */
import type { FeatureCollection } from 'geojson';
import type { ExpressionSpecification, GeoJSONSource, Map as GlMap, LayerSpecification } from 'maplibre-gl';
import { toColor } from '../parts/color.js';
import type { Geofence } from '../state/geofences.js';
import { toFeature } from './geofence-shapes.js';
import type { Layer } from './lazy-layer.js';

const COLORS = {
  light: { line: '#7a3fb8', text: '#5c2f8c', halo: '#ffffff' },
  dark: { line: '#c79bf2', text: '#d9bdf7', halo: '#141b23' },
};
/** Its own color, or that of all geofences. */
const colorOr = (color: string): ExpressionSpecification => ['coalesce', ['get', 'color'], color];

const SOURCE = 'geofences';
const NAME_ZOOM = 6;

export function createGeofenceLayer(map: GlMap, isDark: boolean): Layer<readonly Geofence[]> {
  map.addSource(SOURCE, { type: 'geojson', data: toCollection([]) });
  const color = COLORS[isDark ? 'dark' : 'light'];
  const add = (layer: LayerSpecification): unknown => map.addLayer(layer);
  add({
    id: 'geofence-areas',
    type: 'fill',
    source: SOURCE,
    filter: ['==', ['geometry-type'], 'Polygon'],
    paint: { 'fill-color': colorOr(color.line), 'fill-opacity': 0.12 },
  });
  add({
    id: 'geofence-lines',
    type: 'line',
    source: SOURCE,
    paint: { 'line-color': colorOr(color.line), 'line-width': 1.8 },
  });
  add({
    id: 'geofence-places',
    type: 'circle',
    source: SOURCE,
    filter: ['==', ['geometry-type'], 'Point'],
    paint: { 'circle-color': colorOr(color.line), 'circle-radius': 4 },
  });
  add({
    id: 'geofence-names',
    type: 'symbol',
    source: SOURCE,
    minzoom: NAME_ZOOM,
    layout: { 'text-field': ['get', 'name'], 'text-font': ['sans-serif'], 'text-size': 12, 'text-padding': 4 },
    paint: { 'text-color': color.text, 'text-halo-color': color.halo, 'text-halo-width': 1.4 },
  });
  return {
    show: (shown) => map.getSource<GeoJSONSource>(SOURCE)?.setData(toCollection(shown)),
    setDark(wanted) {
      const { line, text, halo } = COLORS[wanted ? 'dark' : 'light'];
      map.setPaintProperty('geofence-areas', 'fill-color', colorOr(line));
      map.setPaintProperty('geofence-lines', 'line-color', colorOr(line));
      map.setPaintProperty('geofence-places', 'circle-color', colorOr(line));
      map.setPaintProperty('geofence-names', 'text-color', text);
      map.setPaintProperty('geofence-names', 'text-halo-color', halo);
    },
  };
}

const toCollection = (shown: readonly Geofence[]): FeatureCollection => ({
  type: 'FeatureCollection',
  features: shown.flatMap((geofence) => {
    const feature = toFeature(geofence);
    const color = toColor(geofence.color);
    return feature === null ? [] : [{ ...feature, properties: { ...feature.properties, ...(color && { color }) } }];
  }),
});
