/** A map with all geofences, on which one can be drawn or changed. */
import type { Geometry, LineString, Polygon } from 'geojson';
import { type Map as GlMap, LngLatBounds, type Point } from 'maplibre-gl';
import type { GeoJSONStoreFeatures, TerraDraw } from 'terra-draw';
import type { Geofence } from '../state/geofences.js';
import { type BaseMapOptions, createBaseMap } from './base-map.js';
import { createDraw, type DrawMode } from './draw.js';
import { createGeofenceLayer } from './geofence-layer.js';
import { fromCircle, positionsOf, rounded, type Shape, toCircle, toFeature } from './geofence-shapes.js';

export interface GeofenceMapOptions extends BaseMapOptions {
  readonly onSelect: (id: string) => void;
  /** The shape that was drawn or changed. */
  readonly onShape: (shape: Shape) => void;
}

export type GeofenceMap = ReturnType<typeof createGeofenceMap>;
const CLOSE = { padding: 60, maxZoom: 14, duration: 0 };
const ID = 'shape';

/** How a shape is changed on the map; null if it cannot be, such as an area with holes. */
export function modeOf({ geometry, radius }: Partial<Shape>): DrawMode | null {
  if (geometry?.type === 'Polygon') return geometry.coordinates.length === 1 ? 'polygon' : null;
  if (geometry?.type === 'LineString') return 'linestring';
  return geometry?.type === 'Point' && radius !== undefined && radius > 0 ? 'circle' : null;
}

/** Throws where the browser cannot draw it. */
export function createGeofenceMap(container: HTMLElement, options: GeofenceMapOptions) {
  const base = createBaseMap(container, options);
  const { map } = base;
  const layer = base.loaded.then(() => createGeofenceLayer(map, options.isDark));
  const draw = layer.then(() => createDraw(map, options.isDark));
  let started: TerraDraw | null = null;
  void draw.then((one) => {
    started = one;
    onChange(one, options.onShape);
  });
  let isDrawing = false;
  map.on('click', ({ point }) => {
    const id = isDrawing ? undefined : findAt(map, point);
    if (id !== undefined) options.onSelect(id);
  });
  return {
    show: (shown: readonly Geofence[]): void => void layer.then((one) => one.show(shown)),
    /** Moves the map to these geofences, or to this one. */
    goTo(shown: readonly Geofence[]): void {
      const positions = shown.flatMap((one) => positionsOf(toFeature(one)?.geometry ?? EMPTY));
      const bounds = positions.reduce((all, [lon = 0, lat = 0]) => all.extend([lon, lat]), new LngLatBounds());
      if (positions.length > 0) map.fitBounds(bounds, CLOSE);
    },
    /** Begins a new shape. */
    begin(mode: DrawMode): void {
      isDrawing = true;
      void draw.then((one) => {
        one.clear();
        one.setMode(mode);
      });
    },
    /** Shows a shape with corners that can be moved. */
    edit(shape: Shape): void {
      isDrawing = true;
      void draw.then((one) => edit(one, shape));
    },
    stop(): void {
      isDrawing = false;
      void draw.then((one) => {
        one.clear();
        one.setMode('static');
      });
    },
    setDark(isDark: boolean): void {
      base.setDark(isDark);
      void layer.then((one) => one.setDark(isDark));
    },
    zoomBy: (levels: number): void => void map.zoomTo(map.getZoom() + levels, { duration: 0 }),
    remove(): void {
      // Before the map is gone, from which it takes what it has drawn.
      started?.stop();
      map.remove();
    },
  };
}

/** The geofence at a place of the window. */
function findAt(map: GlMap, point: Point): string | undefined {
  const layers = ['geofence-areas', 'geofence-lines', 'geofence-places'];
  if (!map.getLayer('geofence-areas')) return undefined;
  return map.queryRenderedFeatures(point, { layers })[0]?.properties._id as string | undefined;
}

const EMPTY: Geometry = { type: 'GeometryCollection', geometries: [] };

function edit(draw: TerraDraw, shape: Shape): void {
  const mode = modeOf(shape);
  draw.clear();
  if (mode === null) return;
  const { geometry, radius = 0 } = shape;
  const drawn = geometry.type === 'Point' ? toCircle(geometry.coordinates, radius) : (geometry as Polygon | LineString);
  const feature = { type: 'Feature', id: ID, properties: { mode }, geometry: flat(rounded(drawn)) };
  draw.addFeatures([feature as GeoJSONStoreFeatures]);
  draw.setMode('select');
  if (draw.hasFeature(ID)) draw.selectFeature(ID);
}

/** Without heights, which are not drawn. */
function flat<T extends Polygon | LineString>(geometry: T): T {
  const walk = (value: unknown): unknown =>
    Array.isArray(value) ? (typeof value[0] === 'number' ? value.slice(0, 2) : value.map(walk)) : value;
  return { ...geometry, coordinates: walk(geometry.coordinates) };
}

function onChange(draw: TerraDraw, onShape: (shape: Shape) => void): void {
  draw.on('finish', (id, { action }) => {
    const feature = draw.getSnapshotFeature(id);
    if (feature === undefined) return;
    const { geometry } = feature;
    if (action === 'draw') {
      draw.setMode('select');
      draw.selectFeature(id);
    }
    onShape(feature.properties.mode === 'circle' ? fromCircle(geometry as Polygon) : { geometry: rounded(geometry) });
  });
}
