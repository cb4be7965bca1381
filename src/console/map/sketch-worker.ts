/** The worker that draws the sketch of the map. */
import type { FeatureCollection, Position } from 'geojson';
import { borderPx, FINE_LEVEL, GROUND_COLORS } from './basemap.js';
import { type Camera, type WindowSize, WORLD_PX } from './camera.js';
import { loadWorld } from './ground.js';
import { toX, toY } from './mercator.js';
import { drawPoint, POINT_COLORS } from './point-sketch.js';

/** What is to be drawn. */
export interface Scene extends Camera, WindowSize {
  readonly isDark: boolean;
  /** Places in the window, from -1 to 1. */
  readonly places: Float32Array;
  /** Direction, kind and whether it is selected, of each. */
  readonly looks: Float32Array;
}

interface Line {
  readonly points: Float64Array;
  readonly west: number;
  readonly east: number;
  readonly north: number;
  readonly south: number;
}

interface World {
  readonly land: readonly Line[];
  readonly coasts: readonly Line[];
  readonly borders: readonly Line[];
}

const NO_WORLD: World = { land: [], coasts: [], borders: [] };

let context: OffscreenCanvasRenderingContext2D | null = null;
let ratio = 1;
let scene: Scene | null = null;
let isWaiting = false;
/** The countries that are there, by whether they are fine. */
const worlds = new Map<boolean, World>();
const asked = new Set<boolean>();

addEventListener('message', ({ data }: MessageEvent<Scene | { canvas: OffscreenCanvas; ratio: number }>) => {
  if ('canvas' in data) {
    context = data.canvas.getContext('2d');
    ratio = data.ratio;
    return;
  }
  scene = data;
  paintSoon();
});

/** Paints the newest scene: those that came meanwhile are left out. Objects need no countries. */
function paintSoon(): void {
  if (isWaiting) return;
  isWaiting = true;
  setTimeout(() => {
    isWaiting = false;
    if (scene !== null) paint(scene, worldFor(scene.zoom >= FINE_LEVEL));
  });
}

/** The countries; until they are there, those that are. */
function worldFor(isFine: boolean): World {
  if (!asked.has(isFine)) {
    asked.add(isFine);
    // Without them the scene stays as it is.
    void read(isFine).then(paintSoon, () => undefined);
  }
  return worlds.get(isFine) ?? worlds.get(!isFine) ?? NO_WORLD;
}

async function read(isFine: boolean): Promise<void> {
  const { land, lines } = await loadWorld(isFine);
  worlds.set(isFine, {
    land: linesOf(land),
    coasts: linesOf({ ...lines, features: lines.features.slice(0, 1) }),
    borders: linesOf({ ...lines, features: lines.features.slice(1) }),
  });
}

function paint(scene: Scene, world: World): void {
  if (context === null) return;
  const { widthPx, heightPx, isDark, places, looks } = scene;
  Object.assign(context.canvas, { width: Math.round(widthPx * ratio), height: Math.round(heightPx * ratio) });
  context.scale(ratio, ratio);
  const { land, coast, border } = GROUND_COLORS[isDark ? 'dark' : 'light'];
  context.fillStyle = land;
  context.fill(pathOf(world.land, scene), 'evenodd');
  for (const [lines, color, px] of [
    [world.coasts, coast, 1],
    [world.borders, border, borderPx(scene.zoom)],
  ] as const) {
    Object.assign(context, { strokeStyle: color, lineWidth: px });
    context.stroke(pathOf(lines, scene));
  }
  const colors = POINT_COLORS[isDark ? 'dark' : 'light'];
  for (let index = 0; index * 2 < places.length; index++) {
    const [x = 0, y = 0] = places.subarray(index * 2, index * 2 + 2);
    const at = [((x + 1) / 2) * widthPx, ((1 - y) / 2) * heightPx] as const;
    drawPoint(context, at, looks.subarray(index * 3, index * 3 + 3), colors);
  }
}

const ringsOf = ({ features }: FeatureCollection): Position[][] =>
  features.flatMap(({ geometry }) => {
    if (geometry.type === 'Polygon' || geometry.type === 'MultiLineString') return geometry.coordinates;
    return geometry.type === 'MultiPolygon' ? geometry.coordinates.flat() : [];
  });

function linesOf(outlines: FeatureCollection): Line[] {
  return ringsOf(outlines).map((ring) => {
    const line = { west: Infinity, east: -Infinity, north: Infinity, south: -Infinity };
    const points = new Float64Array(ring.length * 2);
    for (const [index, [lon = 0, lat = 0]] of ring.entries()) {
      const [x, y] = [toX(lon), toY(lat)];
      points.set([x, y], index * 2);
      [line.west, line.east] = [Math.min(line.west, x), Math.max(line.east, x)];
      [line.north, line.south] = [Math.min(line.north, y), Math.max(line.south, y)];
    }
    return { points, ...line };
  });
}

/** The lines that are in the window, which may show the world more than once. */
function pathOf(lines: readonly Line[], { x, y, zoom, widthPx, heightPx }: Scene): Path2D {
  const worldPx = WORLD_PX * 2 ** zoom;
  const [left, top] = [x - widthPx / 2 / worldPx, y - heightPx / 2 / worldPx];
  const [right, bottom] = [left + widthPx / worldPx, top + heightPx / worldPx];
  const path = new Path2D();
  for (const { points, west, east, north, south } of lines) {
    if (south < top || north > bottom) continue;
    for (let turn = Math.floor(left - east); turn <= Math.ceil(right - west); turn++) {
      if (east + turn < left || west + turn > right) continue;
      for (let index = 0; index < points.length; index += 2) {
        const px = ((points[index] as number) + turn - left) * worldPx;
        const py = ((points[index + 1] as number) - top) * worldPx;
        if (index === 0) path.moveTo(px, py);
        else path.lineTo(px, py);
      }
    }
  }
  return path;
}
