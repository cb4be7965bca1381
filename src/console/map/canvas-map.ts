/** The map of all objects for browsers without WebGL: countries and objects on a plain canvas. */
import * as leaflet from 'leaflet';
import { changed, type FleetObject, objects } from '../state/fleet.js';
import type { Geofence } from '../state/geofences.js';
import { placeOf } from '../state/places.js';
import type { FleetMap, FleetMapOptions } from './fleet-map.js';
import { toFeature } from './geofence-shapes.js';
import { loadWorld } from './ground.js';

const COLORS = {
  light: {
    land: '#f6f5f1',
    border: '#c3d1db',
    online: '#10a064',
    offline: '#9aa3af',
    selected: '#2449c4',
    fence: '#7a3fb8',
  },
  dark: {
    land: '#1a222c',
    border: '#2d3946',
    online: '#3dd38d',
    offline: '#66727f',
    selected: '#8fabff',
    fence: '#c79bf2',
  },
};
const CLOSE_ZOOM = 11;
const RADIUS_PX = 6;

export function createCanvasMap(container: HTMLElement, options: FleetMapOptions): FleetMap {
  const map = leaflet.map(container, {
    ...{ zoomControl: false, attributionControl: false, preferCanvas: true, maxZoom: 18, minZoom: 2 },
    ...{ center: [49, 11], zoom: 4, fadeAnimation: false, zoomAnimation: false, markerZoomAnimation: false },
  });
  let [color, isPlaced] = [COLORS[options.isDark ? 'dark' : 'light'], options.place !== null];
  const { land, fences } = addGround(map, () => color);
  const markers = createMarkers(map, () => color, options.onSelect);
  if (options.place) map.setView([options.place.lat, options.place.lon], options.place.zoom);
  const reportMove = (): void => {
    const { lat, lng } = map.getCenter();
    options.onMove({ lat, lon: lng, zoom: map.getZoom() });
  };
  map.on('dragend', reportMove);
  const showAll = (): void => {
    const bounds = markers.bounds();
    if (bounds.isValid()) map.fitBounds(bounds, { padding: [60, 60], maxZoom: 13, animate: false });
  };
  const goTo = createSelection(map);
  return {
    drawn: Promise.resolve(),
    update(shown) {
      markers.update(shown);
      goTo();
      if (!isPlaced && markers.bounds().isValid()) {
        isPlaced = true;
        showAll();
      }
    },
    select(id) {
      markers.select(id);
      goTo(id);
    },
    setDark(isDark) {
      color = COLORS[isDark ? 'dark' : 'light'];
      land.setStyle(toLandStyle(color));
      markers.redraw();
    },
    showGeofences(shown: readonly Geofence[]) {
      fences.clearLayers();
      for (const feature of shown.map(toFeature)) if (feature !== null) fences.addData(feature);
    },
    zoomBy(levels) {
      map.setZoom(map.getZoom() + levels);
      reportMove();
    },
    showAll,
    remove: () => void map.remove(),
  };
}

/** Returns a function that goes to an object; without one, to the last one, if its place was not known then. */
function createSelection(map: leaflet.Map): (id?: string | null) => void {
  let awaited: string | null = null;
  return (id = awaited) => {
    const position = placeOf(objects.get(id ?? ''));
    awaited = position === null ? id : null;
    if (position !== null) map.setView([position.lat, position.lon], Math.max(map.getZoom(), CLOSE_ZOOM));
  };
}

/** Countries and geofences, beneath the objects. */
function addGround(map: leaflet.Map, colors: () => Colors) {
  const land = leaflet.geoJSON(undefined, { interactive: false, style: () => toLandStyle(colors()) }).addTo(map);
  const fences = leaflet.geoJSON(undefined, {
    ...{ interactive: false, style: () => ({ color: colors().fence, weight: 1.8, fillOpacity: 0.12 }) },
    pointToLayer: (_feature, place) => leaflet.circleMarker(place, { radius: 4 }),
  });
  fences.addTo(map);
  void loadWorld(false).then((world) => land.addData(world.land).bringToBack());
  return { land, fences };
}

type Colors = (typeof COLORS)['light'];

const toLandStyle = ({ land, border }: Colors): leaflet.PathOptions => ({
  ...{ stroke: true, color: border, weight: 0.8, fillColor: land, fillOpacity: 1 },
});

function createMarkers(map: leaflet.Map, colors: () => Colors, onSelect: (id: string) => void) {
  const markers = new Map<string, leaflet.CircleMarker>();
  let selected: string | null = null;
  let shownBefore: readonly FleetObject[] | null | undefined;
  const styleOf = (id: string): leaflet.PathOptions => {
    const { online, offline, selected: ring } = colors();
    const isSelected = id === selected;
    return {
      ...{ color: isSelected ? ring : '#ffffff', weight: isSelected ? 3 : 1.5, fillOpacity: 1 },
      fillColor: objects.get(id)?.state?.online ? online : offline,
    };
  };
  const put = (id: string): void => {
    const position = placeOf(objects.get(id));
    if (position === null) return;
    const known = markers.get(id);
    const place: [number, number] = [position.lat, position.lon];
    if (known !== undefined) {
      known.setLatLng(place).setStyle(styleOf(id));
      return;
    }
    const marker = leaflet.circleMarker(place, { radius: RADIUS_PX, ...styleOf(id) }).addTo(map);
    markers.set(
      id,
      marker.on('click', () => onSelect(id)),
    );
  };
  return {
    update(shown: readonly FleetObject[] | null): void {
      const wanted = new Set(shown === null ? objects.keys() : shown.map(({ _id }) => _id));
      const isOther = shown !== shownBefore || [...changed].some((id) => !markers.has(id));
      if (isOther) for (const [id, marker] of markers) if (!wanted.has(id) && markers.delete(id)) marker.remove();
      for (const id of isOther ? wanted : changed) if (wanted.has(id)) put(id);
      changed.clear();
      shownBefore = shown;
    },
    select(id: string | null): void {
      const before = selected;
      selected = id;
      for (const one of [before, id]) if (one !== null) markers.get(one)?.setStyle(styleOf(one));
    },
    redraw(): void {
      for (const [id, marker] of markers) marker.setStyle(styleOf(id));
    },
    bounds: () => leaflet.latLngBounds([...markers.values()].map((marker) => marker.getLatLng())),
  };
}
