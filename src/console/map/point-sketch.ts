/** Draws an object on a plain canvas as the shaders of the map do: a disc, or a drop that points where it moves. */

type Rgb = readonly [number, number, number];
export type PointColors = Readonly<Record<'online' | 'offline' | 'ring' | 'selected', Rgb>>;

export const POINT_COLORS: Readonly<Record<'light' | 'dark', PointColors>> = {
  light: { online: [0.05, 0.6, 0.38], offline: [0.56, 0.6, 0.66], ring: [1, 1, 1], selected: [0.14, 0.29, 0.77] },
  dark: { online: [0.24, 0.83, 0.56], offline: [0.4, 0.46, 0.53], ring: [0.06, 0.08, 0.11], selected: [0.62, 0.72, 1] },
};
/** The square in which an object is drawn. */
export const POINT_PX = 24;
/** A selected object is larger. */
const SELECTED = 1.5;
/** The disc, the tip of the drop, and the ring, in halves of the square. */
const SHAPE = { disc: 0.52, tip: 0.95, ring: 0.13 };
/** In place of a direction: everything below this number. */
const LEAST_DIRECTION = -9;
export const NO_DIRECTION = -10;

const toText = (rgb: Rgb): string => `rgb(${rgb.map((part) => Math.round(part * 255)).join(' ')})`;

/** What is needed of a canvas. */
export interface Pen {
  fillStyle: unknown;
  beginPath(): void;
  arc(x: number, y: number, radius: number, fromAngle: number, toAngle: number): void;
  lineTo(x: number, y: number): void;
  fill(): void;
}

export function drawPoint(
  context: Pen,
  [x, y]: readonly [number, number],
  [direction = NO_DIRECTION, isOnline, isSelected]: Float32Array,
  colors: PointColors,
): void {
  const halfPx = (POINT_PX / 2) * (isSelected ? SELECTED : 1);
  const sine = SHAPE.disc / SHAPE.tip;
  for (const [color, inset] of [
    [isSelected ? colors.selected : colors.ring, 0],
    [isOnline ? colors.online : colors.offline, SHAPE.ring],
  ] as const) {
    const [radiusPx, tipPx] = [(SHAPE.disc - inset) * halfPx, (SHAPE.tip - inset / sine) * halfPx];
    context.fillStyle = toText(color);
    context.beginPath();
    if (direction < LEAST_DIRECTION) context.arc(x, y, radiusPx, 0, 2 * Math.PI);
    else {
      const [ahead, side] = [direction - Math.PI / 2, Math.acos(sine)];
      context.arc(x, y, radiusPx, ahead + side, ahead - side);
      context.lineTo(x + Math.cos(ahead) * tipPx, y + Math.sin(ahead) * tipPx);
    }
    context.fill();
  }
}
