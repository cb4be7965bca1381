/** Names beside the markers of the map, and how many objects share a place. Loaded when there are objects on the map. */
import { activityOf } from '../state/activity.js';
import { nowMs } from '../state/clock.js';
import { objects } from '../state/fleet.js';
import { formatAge, formatNumber } from '../text/language.js';
import type { ObjectPoints, View } from './object-points.js';
import { LOOK_SIZE } from './point-shapes.js';

export { pileUp } from './piles.js';

/** If more are in the window, only the selected object, alarms and the largest piles have one. */
const MOST_NAMES = 60;
/** While the map moves, more objects than this go without names. */
const MANY = 5_000;
const TEXT_PX = 12;
const LINE_PX = 16;
const MOST_CHARACTERS = 28;
const MARKER_PX = 8;
const PLATE_PX = 15;
const GAP_PX = 3;
const PILL_PX = 6;
const MINUTE_MS = 60_000;
const MOST_WIDTHS = 2_000;

const COLORS = {
  light: { ink: '#14181f', halo: '#ffffff' },
  dark: { ink: '#e8ecf1', halo: '#0d1116' },
};

interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

interface Wish {
  readonly slot: number;
  readonly size: number;
  /** The greatest comes first. */
  readonly rank: number;
}

export interface NameCanvas {
  draw(view: View, isMoving: boolean): void;
}

export function createNameCanvas(container: HTMLElement, points: ObjectPoints, isDark: () => boolean): NameCanvas {
  const canvas = document.createElement('canvas');
  canvas.className = 'map-points';
  const pen = canvas.getContext('2d');
  const font = `550 ${TEXT_PX}px ${getComputedStyle(container).fontFamily}`;
  const widths = new Map<string, number>();
  const widthOf = (text: string): number => {
    if (widths.size > MOST_WIDTHS) widths.clear();
    const known = widths.get(text) ?? pen?.measureText(text).width ?? 0;
    widths.set(text, known);
    return known;
  };
  container.append(canvas);
  let said = '';
  return {
    draw(view, isMoving) {
      if (pen === null) return;
      const { widthPx, heightPx } = view;
      const width = Math.round(widthPx * devicePixelRatio);
      const height = Math.round(heightPx * devicePixelRatio);
      if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
      pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      pen.clearRect(0, 0, widthPx, heightPx);
      if (isMoving && points.count > MANY) return;
      const { ink, halo } = COLORS[isDark() ? 'dark' : 'light'];
      Object.assign(pen, { font, fillStyle: ink, strokeStyle: halo, lineWidth: 3, lineJoin: 'round' });
      pen.textBaseline = 'middle';
      const drawn: string[] = [];
      for (const { text, box, isCount } of place(points, view, widthOf)) {
        const y = (box.top + box.bottom) / 2;
        if (isCount) drawPill(pen, box);
        else pen.strokeText(text, box.left, y);
        pen.fillStyle = isCount ? halo : ink;
        pen.fillText(text, isCount ? box.left + PILL_PX : box.left, y);
        pen.fillStyle = ink;
        drawn.push(text);
      }
      const now = drawn.join(', ');
      // For those who do not see the canvas.
      if (now !== said) canvas.textContent = now;
      said = now;
    },
  };
}

/** How many objects share a place, in the color of text. */
function drawPill(pen: CanvasRenderingContext2D, { left, top, right, bottom }: Box): void {
  pen.beginPath();
  pen.roundRect(left, top, right - left, bottom - top, LINE_PX / 2);
  pen.stroke();
  pen.fill();
}

interface Name {
  readonly text: string;
  readonly box: Box;
  readonly isCount: boolean;
}

/** The names that have room, the most important ones first. */
function place(points: ObjectPoints, view: View, widthOf: (text: string) => number): Name[] {
  const wishes = wishesOf(points, view);
  const taken = wishes.map(({ slot }) => markerOf(points, view, slot));
  return wishes.flatMap(({ slot, size }, index) => {
    const isCount = size > 1;
    const text = isCount ? formatNumber(size) : nameOf(points.idOf(slot));
    const own = taken[index] as Box;
    const sides = sidesOf(own, widthOf(text) + (isCount ? 2 * PILL_PX : 0)).filter((one) =>
      taken.every((other) => other === own || !isOverlapping(one, other)),
    );
    const box = sides.find(({ left, right }) => left >= 0 && right <= view.widthPx) ?? sides[0];
    if (text === '' || box === undefined) return [];
    taken.push(box);
    return [{ text, box, isCount }];
  });
}

function wishesOf(points: ObjectPoints, view: View): Wish[] {
  const piles = points.piles(view);
  if (piles === null) return [];
  const { count, of, first, size } = piles;
  const ranks = new Float64Array(count);
  // Alarms from the least to the worst, then the selected object.
  for (const [index, slot] of points.front().entries()) {
    const pile = of[slot] as number;
    if (pile >= 0) ranks[pile] = points.count + index;
  }
  const all = Array.from({ length: count }, (_, pile): Wish => {
    const one = { slot: first[pile] as number, size: size[pile] as number };
    return { ...one, rank: (ranks[pile] as number) || one.size };
  });
  const wanted = count > MOST_NAMES ? all.filter(({ rank }) => rank > 1) : all;
  return wanted.sort((one, other) => other.rank - one.rank || one.slot - other.slot).slice(0, MOST_NAMES);
}

function nameOf(id: string): string {
  const object = objects.get(id);
  if (object === undefined) return '';
  const name = object.name.length > MOST_CHARACTERS ? `${object.name.slice(0, MOST_CHARACTERS - 1)}…` : object.name;
  const activity = activityOf(object, nowMs.peek());
  const timeMs = activity === 'silent' || activity === 'offline' ? object.state?.time : undefined;
  const isOld = timeMs !== undefined && nowMs.peek() - timeMs >= MINUTE_MS;
  return isOld ? `${name} · ${formatAge(timeMs, nowMs.peek())}` : name;
}

function markerOf(points: ObjectPoints, view: View, slot: number): Box {
  const { x, y } = points.pixel(view, slot);
  const half = (points.look[slot * LOOK_SIZE + 2] as number) > 0 ? PLATE_PX : MARKER_PX;
  return { left: x - half, top: y - half, right: x + half, bottom: y + half };
}

/** Right of the marker, left of it, below, above. */
function sidesOf({ left, top, right, bottom }: Box, width: number): Box[] {
  const middle = (left + right) / 2;
  const line = (top + bottom - LINE_PX) / 2;
  const at = (x: number, y: number): Box => ({ left: x, top: y, right: x + width, bottom: y + LINE_PX });
  return [
    at(right + GAP_PX, line),
    at(left - GAP_PX - width, line),
    at(middle - width / 2, bottom),
    at(middle - width / 2, top - LINE_PX),
  ];
}

const isOverlapping = (one: Box, other: Box): boolean =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
