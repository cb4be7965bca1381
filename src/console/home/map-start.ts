/** How the map begins: a sketch at once, and the map itself when the page is at rest or somebody reaches for it. */
import type { FleetMap, FleetMapOptions } from '../map/fleet-map.js';
import type { Sketch } from '../map/sketch.js';
import { whenIdle } from './idle.js';

export type MapState = 'loading' | 'sketched' | 'ready' | 'impossible';

export interface MapStart {
  /** The map; null before it is there. */
  readonly map: FleetMap | null;
  /** What shows the objects now. */
  readonly picture: FleetMap | Sketch | null;
  remove(): void;
}

/** Draws into the element; `onState` is called whenever something else shows the objects. */
export function startMap(element: HTMLElement, options: FleetMapOptions, onState: (state: MapState) => void): MapStart {
  let [map, sketch, isGone]: [FleetMap | null, Sketch | null, boolean] = [null, null, false];
  const removeSketch = (): void => {
    sketch?.remove();
    sketch = null;
  };
  const start = async (): Promise<void> => {
    // The map does without one.
    sketch = await createSketch(() => (isGone ? null : element), options).catch(() => null);
    if (isGone) return;
    if (sketch !== null) {
      onState('sketched');
      await whenIdle(element.parentElement ?? element);
      if (isGone) return;
    }
    const created = await createMap(() => (isGone ? null : element), options);
    // What it shows is put on it in a task of its own.
    await new Promise<void>((resolve) => setTimeout(() => resolve()));
    if (isGone || created === null) {
      created?.remove();
      return;
    }
    map = created;
    onState('ready');
    sketch?.showGround();
    void map.drawn.then(removeSketch);
  };
  void start().catch(() => onState('impossible'));
  return {
    get map() {
      return map;
    },
    get picture() {
      return map ?? sketch;
    },
    remove() {
      isGone = true;
      removeSketch();
      map?.remove();
    },
  };
}

async function createSketch(find: () => HTMLElement | null, options: FleetMapOptions): Promise<Sketch | null> {
  const sketching = await import('../map/sketch.js');
  const element = find();
  return element && sketching.createSketch(element, options);
}

/** The map that this browser can draw; null if its element is gone meanwhile. */
async function createMap(find: () => HTMLElement | null, options: FleetMapOptions): Promise<FleetMap | null> {
  const { createFleetMap } = await import('../map/fleet-map.js');
  const element = find();
  try {
    return element && createFleetMap(element, options);
  } catch {
    // Without WebGL. To ask for it beforehand would take half as long as the map.
    const { createCanvasMap } = await import('../map/canvas-map.js');
    const again = find();
    return again && createCanvasMap(again, options);
  }
}
