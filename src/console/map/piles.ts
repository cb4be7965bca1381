/** Objects that cover each other on the map: each pile is drawn as one marker, and opens as a list. */

/** Points that are closer than this to the first one of a pile belong to it. */
const COVERED_PX = 6;
/** Of the grid: two piles never begin in one cell. */
const CELL_PX = COVERED_PX / Math.SQRT2;
/** Cells in which a pile may have begun that covers a point. */
const REACH = 2;
/** Around the window, so that a marker at its edge is one, too. */
const MARGIN_PX = 12;

interface Window {
  readonly widthPx: number;
  readonly heightPx: number;
}

export interface Piles {
  readonly count: number;
  /** The pile of each slot; -1 of those that are not in the window. */
  readonly of: Int32Array;
  /** Its first slot, and how many it has. */
  readonly first: Int32Array;
  readonly size: Int32Array;
}

/** `places` are those in the window, from -1 to 1, two numbers for each of `count` slots. */
export function pileUp(places: Float32Array, count: number, { widthPx, heightPx }: Window): Piles {
  const of = new Int32Array(count).fill(-1);
  const first = new Int32Array(count);
  const size = new Int32Array(count);
  const columns = Math.ceil((widthPx + 2 * MARGIN_PX) / CELL_PX) + 2 * REACH;
  const rows = Math.ceil((heightPx + 2 * MARGIN_PX) / CELL_PX) + 2 * REACH;
  const cells = new Int32Array(columns * rows).fill(-1);
  const xPx = (slot: number): number => (((places[slot * 2] as number) + 1) * widthPx) / 2 + MARGIN_PX;
  const yPx = (slot: number): number => ((1 - (places[slot * 2 + 1] as number)) * heightPx) / 2 + MARGIN_PX;
  const find = (x: number, y: number, cell: number): number => {
    for (let row = -REACH; row <= REACH; row++) {
      for (let column = -REACH; column <= REACH; column++) {
        const pile = cells[cell + row * columns + column] as number;
        if (pile < 0) continue;
        const begin = first[pile] as number;
        if ((xPx(begin) - x) ** 2 + (yPx(begin) - y) ** 2 <= COVERED_PX ** 2) return pile;
      }
    }
    return -1;
  };
  let piles = 0;
  for (let slot = 0; slot < count; slot++) {
    const x = xPx(slot);
    const y = yPx(slot);
    if (x < 0 || y < 0 || x > widthPx + 2 * MARGIN_PX || y > heightPx + 2 * MARGIN_PX) continue;
    const cell = (Math.floor(y / CELL_PX) + REACH) * columns + Math.floor(x / CELL_PX) + REACH;
    let pile = find(x, y, cell);
    if (pile < 0) {
      pile = piles++;
      cells[cell] = pile;
      first[pile] = slot;
    }
    of[slot] = pile;
    size[pile] = (size[pile] as number) + 1;
  }
  return { count: piles, of, first, size };
}
