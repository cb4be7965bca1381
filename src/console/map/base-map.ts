/** A map in the page: the ground beneath, the way it is moved, and its colours. */

import { effect } from '@preact/signals';
import { Map as GlMap, ScaleControl, setWorkerUrl } from 'maplibre-gl';
import { toAddress } from '../state/location.js';
import { language } from '../text/language.js';
import { addBasemap, colorBasemap, FIRST_STYLE, settled } from './basemap.js';
import { FIRST_PLACE, MIN_ZOOM } from './camera.js';
import { watchTiles } from './missing-tiles.js';
import { STYLE, TILES_URL } from './own-map.js';
import { printPicture } from './print.js';
import type { TilesLayer } from './tiles-file.js';
import { usesMiles } from './units.js';

declare const MAP_WORKER: string;

const SCALE_PX = 80;

export interface BaseMapOptions {
  readonly label: string;
  readonly isDark: boolean;
  /** Goes on beyond the antimeridian, where nobody draws. */
  readonly isEndless?: boolean;
  /** More texts of the map, by their names in MapLibre. */
  readonly texts?: Readonly<Record<string, string>>;
}

export interface BaseMap {
  readonly map: GlMap;
  /** When layers can be added. */
  readonly loaded: Promise<void>;
  setDark(isDark: boolean): void;
}

/** Throws where the browser cannot draw it. */
export function createBaseMap(container: HTMLElement, options: BaseMapOptions): BaseMap {
  const { label, isDark, isEndless = false, texts } = options;
  setWorkerUrl(toAddress(MAP_WORKER));
  const map = new GlMap({
    attributionControl: STYLE === null ? false : { compact: true },
    container,
    style: STYLE ?? FIRST_STYLE,
    renderWorldCopies: isEndless,
    // The own style is tested.
    validateStyle: STYLE !== null,
    // What is drawn on it is placed without turning and tilting.
    dragRotate: false,
    pitchWithRotate: false,
    touchPitch: false,
    maxPitch: 0,
    center: [FIRST_PLACE.lon, FIRST_PLACE.lat],
    zoom: FIRST_PLACE.zoom,
    minZoom: MIN_ZOOM,
    maxZoom: 18,
    fadeDuration: 0,
    locale: { 'Map.Title': label, ...texts },
  });
  map.touchZoomRotate.disableRotation();
  map.keyboard.disableRotation();
  addScale(map);
  printPicture(map, container);
  container.dataset.style = STYLE === null ? 'own' : 'foreign';
  let isDarkNow = isDark;
  const ground = loadGround(map, isDark, container);
  return {
    map,
    loaded: ground.then(() => undefined),
    setDark(wanted) {
      if (isDarkNow === wanted) return;
      isDarkNow = wanted;
      void ground.then(({ setDark }) => setDark(wanted));
    },
  };
}

/** In the units of the reader, also when the language of the console changes. */
function addScale(map: GlMap): void {
  const scale = new ScaleControl({ maxWidth: SCALE_PX });
  map.addControl(scale, 'bottom-left');
  const stop = effect(() => scale.setUnit(usesMiles(navigator.languages, language.value) ? 'imperial' : 'metric'));
  map.on('remove', stop);
}

interface Ground {
  readonly setDark: (isDark: boolean) => void;
}

/** The ground: a style of the operator's, or the own outlines, with the operator's tiles on them. */
async function loadGround(map: GlMap, isDark: boolean, container: HTMLElement): Promise<Ground> {
  const watch = STYLE === null && TILES_URL === null ? null : watchTiles(map, container);
  if (STYLE !== null && (await isStyleThere(map))) {
    // Most maps have no such style.
    (await import('./style-labels.js')).translateLabels(map);
    markDrawn(map);
    return { setDark: () => undefined };
  }
  if (STYLE !== null) {
    watch?.giveUp();
    container.dataset.style = 'own';
    map.setStyle(FIRST_STYLE);
  }
  await settled(map);
  const basemap = addBasemap(map, isDark);
  const tiles = basemap.then(() => loadTiles(map, isDark, container)).catch(() => watch?.giveUp());
  // Without its ground, the map still shows the objects.
  void tiles.then(() => markDrawn(map));
  return {
    setDark(wanted) {
      void basemap.then(() => colorBasemap(map, wanted)).catch(() => undefined);
      void tiles.then((layer) => layer?.setDark(wanted));
    },
  };
}

/** The operator's file of tiles, if there is one. */
async function loadTiles(map: GlMap, isDark: boolean, container: HTMLElement): Promise<TilesLayer | null> {
  if (TILES_URL === null) return null;
  const layer = await (await import('./tiles-file.js')).addTiles(map, TILES_URL, isDark);
  if (layer.attribution) container.dataset.attribution = layer.attribution;
  return layer;
}

/** Whether the operator's style can be loaded. Errors of single tiles come later. */
function isStyleThere(map: GlMap): Promise<boolean> {
  return new Promise((resolve) => {
    map.once('styledata', () => resolve(true));
    map.once('error', () => resolve(false));
  });
}

/** Marks the map for as long as all of it is drawn. */
function markDrawn(map: GlMap): void {
  const { dataset } = map.getContainer();
  map.on('movestart', () => delete dataset.drawn);
  map.on('idle', () => {
    dataset.drawn = 'true';
  });
  map.triggerRepaint();
}

export const isReduced = (): boolean => matchMedia('(prefers-reduced-motion: reduce)').matches;
