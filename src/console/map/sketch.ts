/**
 * A sketch of the map, which a worker draws: countries and objects. It is there long before the map: to create that one keeps a slow
 * processor busy for seconds, in which the page would not answer.
 */
import { type FleetObject, objects } from '../state/fleet.js';
import { placeOf } from '../state/places.js';
import {
  type Camera,
  CLOSE_ZOOM,
  cameraFor,
  cameraOf,
  FIRST_PLACE,
  type MapPlace,
  type WindowSize,
  WORLD_PX,
} from './camera.js';
import { toX, toY } from './mercator.js';
import { ObjectPoints } from './object-points.js';
import { STYLE_URL } from './own-map.js';
import type { Scene } from './sketch-worker.js';

declare const SKETCH_WORKER: string;

const PAUSE_MS = 300;

interface SketchOptions {
  readonly isDark: boolean;
  readonly place: MapPlace | null;
}

export interface Sketch {
  /** Shows these objects, or all of them. */
  update(shown: readonly FleetObject[] | null): void;
  select(id: string | null): void;
  setDark(isDark: boolean): void;
  /** Leaves the objects to the map. */
  showGround(): void;
  remove(): void;
}

interface Shown {
  isDark: boolean;
  selected: string | null;
  /** Whether the objects are drawn, too. */
  hasObjects: boolean;
}

/** Draws behind the container; null where browsers cannot draw in workers, and for the operator's own style, which looks otherwise. */
export function createSketch(container: HTMLElement, { isDark, place }: SketchOptions): Sketch | null {
  if (STYLE_URL !== null || !('transferControlToOffscreen' in HTMLCanvasElement.prototype)) return null;
  const worker = new Worker(SKETCH_WORKER, { type: 'module' });
  const canvas = document.createElement('canvas');
  canvas.className = 'map-sketch';
  container.before(canvas);
  const offscreen = canvas.transferControlToOffscreen();
  worker.postMessage({ canvas: offscreen, ratio: devicePixelRatio }, [offscreen]);
  const points = new ObjectPoints();
  const shown: Shown = { isDark, selected: null, hasObjects: true };
  let [timer, pauseMs]: [number | undefined, number] = [undefined, 0];
  // What changes at once is drawn together.
  const draw = (changes: Partial<Shown>): void => {
    Object.assign(shown, changes);
    timer ??= setTimeout(() => {
      [timer, pauseMs] = [undefined, PAUSE_MS];
      const size = { widthPx: container.clientWidth, heightPx: container.clientHeight };
      worker.postMessage(toScene(points, shown, findCamera(points, shown.selected, place, size), size));
    }, pauseMs);
  };
  const resizing = new ResizeObserver(() => draw({}));
  resizing.observe(container);
  return {
    update(objects) {
      points.show(objects);
      draw({});
    },
    select: (selected) => draw({ selected }),
    setDark: (wanted) => draw({ isDark: wanted }),
    showGround: () => draw({ hasObjects: false }),
    remove() {
      clearTimeout(timer);
      resizing.disconnect();
      worker.terminate();
      canvas.remove();
    },
  };
}

function toScene(
  points: ObjectPoints,
  { isDark, selected, hasObjects }: Shown,
  camera: Camera,
  size: WindowSize,
): Scene {
  points.mark(selected);
  const count = hasObjects ? points.count : 0;
  const { x, y, zoom } = camera;
  return {
    ...{ ...size, x, y, zoom, isDark },
    places: points.project({ x, y, worldPx: WORLD_PX * 2 ** zoom, ...size }).slice(0, count * 2),
    looks: points.look.slice(0, count * 3),
  };
}

/** As the map will find it. */
function findCamera(points: ObjectPoints, selected: string | null, place: MapPlace | null, size: WindowSize): Camera {
  if (place !== null) return cameraOf(place);
  const position = placeOf(objects.get(selected ?? ''));
  if (position !== null) return { x: toX(position.lon), y: toY(position.lat), zoom: CLOSE_ZOOM };
  const extent = points.extent();
  return extent === null ? cameraOf(FIRST_PLACE) : cameraFor(extent, size);
}
