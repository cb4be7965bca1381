/** The map with all objects on it. */
import type { Map as GlMap } from 'maplibre-gl';
import { type FleetObject, objects } from '../state/fleet.js';
import type { Geofence } from '../state/geofences.js';
import { placeOf } from '../state/places.js';
import { type BaseMap, type BaseMapOptions, createBaseMap, isReduced } from './base-map.js';
import { CLOSE_ZOOM, FIT, type MapPlace, WORLD_PX } from './camera.js';
import { createLazyLayer } from './lazy-layer.js';
import { toLat, toLon, toX, toY } from './mercator.js';
import type { NameCanvas } from './name-canvas.js';
import { ObjectPoints, type View } from './object-points.js';
import { createPointCanvas, type PointCanvas, type PointCanvasOptions } from './point-canvas.js';
import { POINT_COLORS } from './point-shapes.js';

const CLICK_PX = 16;
/** The share of the map's width and height in which a followed object may move. */
const FOLLOW_SHARE = 0.7;

export interface FleetMapOptions extends BaseMapOptions {
  /** Where the map begins; null for where the objects are. */
  readonly place: MapPlace | null;
  /** How much of the map, at its right, the card of a selected object covers. */
  readonly coveredPx: () => number;
  /** Called when the user has moved the map. */
  readonly onMove: (place: MapPlace) => void;
  readonly onSelect: (id: string | null) => void;
  /** Called when the user clicks where several objects are, with the place in the map in pixels. */
  readonly onSeveral: (ids: readonly string[], at: PixelPlace) => void;
  /** Called when the map begins to move: what was shown at a place is somewhere else. */
  readonly onMoving: () => void;
}

export interface PixelPlace {
  readonly x: number;
  readonly y: number;
}

export interface FleetMap {
  /** Shows these objects, or all of them. */
  update(shown: readonly FleetObject[] | null): void;
  select(id: string | null): void;
  setDark(isDark: boolean): void;
  showGeofences(shown: readonly Geofence[]): void;
  zoomBy(levels: number, originalEvent: Event): void;
  showAll(): void;
  /** Goes to a place at once; null for where the objects are. */
  goTo(place: MapPlace | null): void;
  remove(): void;
}

/** Throws where the browser cannot draw it. */
export function createFleetMap(container: HTMLElement, options: FleetMapOptions): FleetMap {
  const base = createBaseMap(container, { ...options, isEndless: true });
  const { map } = base;
  const points = new ObjectPoints();
  const view = (): View => viewOf(map);
  const uncovered = createUncovered(map, options.coveredPx);
  const camera = createCamera(map, points, { place: options.place, uncovered });
  const follower = createFollower(map, uncovered);
  let isDark: boolean = options.isDark;
  let selected: string | null = null;
  const colors = () => POINT_COLORS[isDark ? 'dark' : 'light'];
  const names = createNames(map, points, () => isDark);
  const drawing = addPointCanvas(map, { points, view, colors, onDraw: names.draw });
  const layers = createLayers(base, () => isDark);
  map.on('click', ({ point }) => {
    const [first = null, ...others] = points.together(view(), point, CLICK_PX);
    if (first !== null && others.length > 0) options.onSeveral([first, ...others], { x: point.x, y: point.y });
    else options.onSelect(first);
  });
  map.on('movestart', options.onMoving);
  reportMoves(map, options.onMove);
  showNames(map, container, (at) => points.together(view(), at, CLICK_PX));

  return {
    update(shown): void {
      points.show(shown);
      points.mark(selected);
      if (points.count > 0) names.loadOnce(drawing.drawSoon);
      camera.begin(selected);
      follower.follow();
      drawing.drawSoon();
    },
    select(id): void {
      selected = id;
      points.mark(id);
      if (id !== null) camera.goTo(id);
      follower.select(id);
      layers.trail.show(id);
      drawing.drawSoon();
    },
    setDark(wanted): void {
      isDark = wanted;
      base.setDark(wanted);
      layers.geofences.setDark(wanted);
      layers.trail.setDark(wanted);
    },
    showGeofences: layers.geofences.show,
    zoomBy(levels: number, originalEvent: Event): void {
      map.zoomTo(map.getZoom() + levels, { duration: isReduced() ? 0 : 250 }, { originalEvent });
    },
    showAll(): void {
      follower.select(null);
      camera.showAll(true);
    },
    goTo: camera.jumpTo,
    remove: (): void => map.remove(),
  };
}

/** What is drawn beneath the objects. */
const createLayers = (base: BaseMap, isDark: () => boolean) => ({
  geofences: createLazyLayer<readonly Geofence[]>(
    base,
    () => import('./geofence-layer.js').then(({ createGeofenceLayer }) => createGeofenceLayer),
    { isDark, isEmpty: ({ length }) => length === 0 },
  ),
  /** Of the selected object. */
  trail: createLazyLayer<string | null>(
    base,
    () => import('./trail.js').then(({ createTrailLayer }) => createTrailLayer),
    {
      isDark,
      isEmpty: (id) => id === null,
    },
  ),
});

/** Draws the objects whenever the map is drawn. The map is not left half done where the browser has no canvas left. */
function addPointCanvas(map: GlMap, options: PointCanvasOptions): PointCanvas {
  try {
    const canvas = createPointCanvas(map.getCanvasContainer(), options);
    map.on('render', canvas.draw);
    map.on('remove', canvas.remove);
    return canvas;
  } catch (error) {
    map.remove();
    throw error;
  }
}

/** The names of objects, once there are some. */
function createNames(map: GlMap, points: ObjectPoints, isDark: () => boolean) {
  let canvas: NameCanvas | null = null;
  let isAsked = false;
  const load = async (onLoad: () => void): Promise<void> => {
    const part = await import('./name-canvas.js').catch(() => null);
    const container = map.getCanvasContainer();
    if (part === null || !container.isConnected) return;
    points.pileUp = part.pileUp;
    canvas = part.createNameCanvas(container, points, isDark);
    onLoad();
  };
  return {
    draw: (view: View): void => canvas?.draw(view, map.isMoving()),
    loadOnce(onLoad: () => void): void {
      if (!isAsked) void load(onLoad);
      isAsked = true;
    },
  };
}

interface Uncovered {
  /** From the middle of the map to that of what the card leaves. */
  offset(): [number, number];
  /** Whether a place is in the middle part of it, which is this share of its width and height. */
  has(center: [number, number], share: number): boolean;
}

/** The part of the map beside the card; at least half of it, because a window may be as narrow as the card. */
function createUncovered(map: GlMap, coveredPx: () => number): Uncovered {
  const widthOf = (mapPx: number): number => Math.max(mapPx - coveredPx(), mapPx / 2);
  return {
    offset() {
      const { clientWidth } = map.getCanvas();
      return [(widthOf(clientWidth) - clientWidth) / 2, 0];
    },
    has(center, share) {
      const { x, y } = map.project(center);
      const { clientWidth, clientHeight } = map.getCanvas();
      const isNear = (px: number, ofPx: number): boolean => Math.abs(px / ofPx - 0.5) <= share / 2;
      return isNear(x, widthOf(clientWidth)) && isNear(y, clientHeight);
    },
  };
}

interface CameraOptions {
  readonly place: MapPlace | null;
  readonly uncovered: Uncovered;
}

function createCamera(map: GlMap, points: ObjectPoints, { place, uncovered }: CameraOptions) {
  let isPlaced = place !== null;
  /** The object to which the map goes when its place is found. */
  let awaited: string | null = null;
  /** Until the map is moved, it shows all objects in whatever space it has: on paper, or beside what comes below it. */
  let showsAll: boolean = false;
  map.on('resize', () => {
    if (showsAll) showAll(false);
  });
  map.on('movestart', ({ originalEvent }) => {
    if (originalEvent !== undefined) showsAll = false;
  });
  if (place !== null) jumpTo(place);
  function jumpTo(to: MapPlace | null): void {
    isPlaced = true;
    showsAll = false;
    if (to === null) showAll(false);
    else map.jumpTo({ center: [to.lon, to.lat], zoom: to.zoom });
  }
  function showAll(isAnimated: boolean): void {
    const extent = points.extent();
    if (extent === null) return;
    showsAll = true;
    const { west, south, east, north } = extent;
    const bounds: [[number, number], [number, number]] = [
      [toLon(west), toLat(south)],
      [toLon(east), toLat(north)],
    ];
    if (isAnimated && !isReduced()) map.fitBounds(bounds, { ...FIT, duration: 600 });
    else map.jumpTo(map.cameraForBounds(bounds, FIT) ?? {});
  }
  function goTo(id: string): void {
    const position = placeOf(objects.get(id));
    awaited = position === null ? id : null;
    if (position === null) return;
    showsAll = false;
    const center: [number, number] = [position.lon, position.lat];
    if (isPlaced && uncovered.has(center, 1) && map.getZoom() > CLOSE_ZOOM - 3) return;
    const to = { center, zoom: Math.max(map.getZoom(), CLOSE_ZOOM), offset: uncovered.offset() };
    if (isReduced() || !isPlaced) map.easeTo({ ...to, duration: 0 });
    else map.flyTo({ ...to, speed: 2.4, maxDuration: 1_500 });
    isPlaced = true;
  }
  return {
    showAll,
    jumpTo,
    goTo,
    /** The first objects with a place decide where the map begins, unless one is selected. */
    begin(selected: string | null): void {
      if (selected !== null && selected === awaited) goTo(selected);
      if (isPlaced || points.count === 0) return;
      if (selected !== null && points.has(selected)) goTo(selected);
      else showAll(false);
      isPlaced = true;
    },
  };
}

/** Keeps the selected object in view, until the user moves the map away from it or asks for all objects. */
function createFollower(map: GlMap, uncovered: Uncovered) {
  let followed: string | null = null;
  const isInView = (center: [number, number]): boolean => uncovered.has(center, FOLLOW_SHARE);
  const centerOf = (id: string | null): [number, number] | null => {
    const position = placeOf(objects.get(id ?? ''));
    return position && [position.lon, position.lat];
  };
  map.on('dragstart', () => {
    followed = null;
  });
  // Keys, the wheel and a drawn rectangle move the map without dragging it.
  map.on('moveend', ({ originalEvent }) => {
    const center = centerOf(followed);
    if (originalEvent !== undefined && center !== null && !isInView(center)) followed = null;
  });
  return {
    select(id: string | null): void {
      followed = id;
    },
    follow(): void {
      const center = centerOf(followed);
      if (center === null || map.isMoving() || isInView(center)) return;
      map.easeTo({ center, offset: uncovered.offset(), duration: isReduced() ? 0 : 500 });
    },
  };
}

function viewOf(map: GlMap): View {
  const { lng, lat } = map.getCenter();
  const { clientWidth: widthPx, clientHeight: heightPx } = map.getCanvas();
  return { x: toX(lng), y: toY(lat), worldPx: WORLD_PX * 2 ** map.getZoom(), widthPx, heightPx };
}

/** Only moves of the user: where the objects are is not worth an address. */
function reportMoves(map: GlMap, onMove: FleetMapOptions['onMove']): void {
  map.on('moveend', ({ originalEvent }) => {
    if (originalEvent === undefined) return;
    const { lat, lng } = map.getCenter();
    onMove({ lat, lon: lng, zoom: map.getZoom() });
  });
}

/** The name of the object under the pointer, and how many others are there. */
function showNames(map: GlMap, container: HTMLElement, find: (at: PixelPlace) => readonly string[]): void {
  const note = document.createElement('div');
  note.className = 'map-name';
  note.hidden = true;
  container.append(note);
  map.on('mousemove', ({ point }) => {
    const [first = '', ...others] = find(point);
    const object = objects.get(first);
    note.hidden = object === undefined;
    map.getCanvas().style.cursor = object === undefined ? '' : 'pointer';
    if (object === undefined) return;
    note.textContent = others.length > 0 ? `${object.name} + ${others.length}` : object.name;
    note.style.transform = `translate(${Math.round(point.x + 12)}px, ${Math.round(point.y + 12)}px)`;
  });
  map.on('mouseout', () => {
    note.hidden = true;
  });
}
