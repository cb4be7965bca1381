/** The map with all objects on it. */
import { type Map as GlMap, MercatorCoordinate } from 'maplibre-gl';
import { changed, type FleetObject, objects, positionOf } from '../state/fleet.js';
import type { Geofence } from '../state/geofences.js';
import { type BaseMapOptions, createBaseMap, isReduced } from './base-map.js';
import { createGeofenceLayer, type GeofenceLayer } from './geofence-layer.js';
import { ObjectPoints, type View } from './object-points.js';
import { createPointLayer, POINT_COLORS } from './point-layer.js';

const TILE_PX = 512;
const CLICK_PX = 16;
const CLOSE_ZOOM = 11;
const FIT = { padding: 60, maxZoom: 13 };

/** The middle of the map, and its zoom. */
export interface MapPlace {
  readonly lat: number;
  readonly lon: number;
  readonly zoom: number;
}

export interface FleetMapOptions extends BaseMapOptions {
  /** Where the map begins; null for where the objects are. */
  readonly place: MapPlace | null;
  /** Called when the user has moved the map. */
  readonly onMove: (place: MapPlace) => void;
  readonly onSelect: (id: string | null) => void;
}

export interface FleetMap {
  /** Shows these objects, or all of them. */
  update(shown: readonly FleetObject[] | null): void;
  select(id: string | null): void;
  setDark(isDark: boolean): void;
  showGeofences(shown: readonly Geofence[]): void;
  zoomBy(levels: number, originalEvent: Event): void;
  showAll(): void;
  remove(): void;
}

/** Throws where the browser cannot draw it. */
export function createFleetMap(container: HTMLElement, options: FleetMapOptions): FleetMap {
  const base = createBaseMap(container, { ...options, isEndless: true });
  const { map } = base;
  const points = new ObjectPoints();
  const view = (): View => viewOf(map);
  const camera = createCamera(map, points, options.place);
  let [isDark, selected]: [boolean, string | null] = [options.isDark, null];
  let shownBefore: readonly FleetObject[] | null | undefined;
  const layer = createPointLayer({ points, view, colors: () => POINT_COLORS[isDark ? 'dark' : 'light'] ?? {} });
  const loaded = base.loaded.then(() => map.addLayer(layer));
  let geofences: Promise<GeofenceLayer> | undefined;
  map.on('click', ({ point }) => options.onSelect(points.nearest(view(), point, CLICK_PX)));
  reportMoves(map, options.onMove);
  showNames(map, container, (at) => points.nearest(view(), at, CLICK_PX));

  return {
    update(shown: readonly FleetObject[] | null): void {
      if (shown !== null || shownBefore !== shown || [...changed].some((id) => !objects.has(id))) {
        points.reset(shown ?? objects.values());
        shownBefore = shown;
      } else points.change(changed);
      changed.clear();
      points.mark(selected);
      camera.begin(selected);
      map.triggerRepaint();
    },
    select(id: string | null): void {
      selected = id;
      points.mark(id);
      if (id !== null) camera.goTo(id);
      map.triggerRepaint();
    },
    setDark(wanted: boolean): void {
      isDark = wanted;
      base.setDark(wanted);
      void geofences?.then((shapes) => shapes.setDark(wanted));
    },
    showGeofences(shown: readonly Geofence[]): void {
      // Without geofences, the map begins sooner.
      if (shown.length > 0) geofences ??= loaded.then(() => createGeofenceLayer(map, isDark, layer.id));
      void geofences?.then((shapes) => shapes.show(shown));
    },
    zoomBy(levels: number, originalEvent: Event): void {
      map.zoomTo(map.getZoom() + levels, { duration: isReduced() ? 0 : 250 }, { originalEvent });
    },
    showAll: (): void => camera.showAll(true),
    remove: (): void => map.remove(),
  };
}

function createCamera(map: GlMap, points: ObjectPoints, place: MapPlace | null) {
  let isPlaced = place !== null;
  if (place !== null) map.jumpTo({ center: [place.lon, place.lat], zoom: place.zoom });
  function showAll(isAnimated: boolean): void {
    const bounds = points.bounds();
    if (bounds === null) return;
    if (isAnimated && !isReduced()) map.fitBounds(bounds, { ...FIT, duration: 600 });
    else map.jumpTo(map.cameraForBounds(bounds, FIT) ?? {});
  }
  function goTo(id: string): void {
    const position = positionOf(objects.get(id)?.state);
    if (position === null) return;
    const center: [number, number] = [position.lon, position.lat];
    if (isPlaced && map.getBounds().contains(center) && map.getZoom() > CLOSE_ZOOM - 3) return;
    const zoom = Math.max(map.getZoom(), CLOSE_ZOOM);
    if (isReduced() || !isPlaced) map.jumpTo({ center, zoom });
    else map.flyTo({ center, zoom, speed: 2.4, maxDuration: 1_500 });
    isPlaced = true;
  }
  return {
    showAll,
    goTo,
    /** The first objects with a place decide where the map begins, unless one is selected. */
    begin(selected: string | null): void {
      if (isPlaced || points.count === 0) return;
      if (selected !== null && points.has(selected)) goTo(selected);
      else showAll(false);
      isPlaced = true;
    },
  };
}

function viewOf(map: GlMap): View {
  const { x, y } = MercatorCoordinate.fromLngLat(map.getCenter());
  const { clientWidth: widthPx, clientHeight: heightPx } = map.getCanvas();
  return { x, y, worldPx: TILE_PX * 2 ** map.getZoom(), widthPx, heightPx };
}

/** Only moves of the user: where the objects are is not worth an address. */
function reportMoves(map: GlMap, onMove: FleetMapOptions['onMove']): void {
  map.on('moveend', ({ originalEvent }) => {
    if (originalEvent === undefined) return;
    const { lat, lng } = map.getCenter();
    onMove({ lat, lon: lng, zoom: map.getZoom() });
  });
}

/** The name of the object under the pointer. */
function showNames(map: GlMap, container: HTMLElement, find: (at: { x: number; y: number }) => string | null): void {
  const note = document.createElement('div');
  note.className = 'map-name';
  note.hidden = true;
  container.append(note);
  map.on('mousemove', ({ point }) => {
    const object = objects.get(find(point) ?? '');
    note.hidden = object === undefined;
    map.getCanvas().style.cursor = object === undefined ? '' : 'pointer';
    if (object === undefined) return;
    note.textContent = object.name;
    note.style.transform = `translate(${Math.round(point.x + 12)}px, ${Math.round(point.y + 12)}px)`;
  });
  map.on('mouseout', () => {
    note.hidden = true;
  });
}
