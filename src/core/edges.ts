/** The edges of a shape, found by place: of thousands of them, few are near a position. Exact on edges. Degrees. Pure. */
import { orient2d } from 'robust-predicates';

export type Point = number[];
export type Line = readonly Point[];

export interface Box {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

/** How often an edge is listed on average, at most: edges that are long across all bands make bands wider. */
const LISTED = 4;
/** The numbers that an edge is kept as. */
const ENDS = 4;
/** Degrees; less is not divided. */
const LEAST_EXTENT = 1e-9;

/**
 * Bands across the shape, along latitude or longitude: whichever most edges are shorter along. A position is compared with the edges
 * that reach into its band. `x` is the coordinate along the bands, `y` the one across them.
 */
export class Edges {
  readonly #isByLatitude: boolean;
  /** Of each edge: x and y of its beginning, x and y of its end. A point is an edge as well. */
  readonly #ends: Float64Array;
  readonly #lowest: number;
  readonly #highest: number;
  readonly #bandsPerDegree: number;
  /** Where each band begins in the list; one more is its end. */
  readonly #starts: Uint32Array;
  readonly #listed: Uint32Array;

  constructor(lines: readonly Line[]) {
    const { west, south, east, north } = boxOf(lines.flat());
    // How often a line across the bands meets an edge, on average.
    const ofLatitude = lengthOf(lines, 1) / (north - south);
    const ofLongitude = lengthOf(lines, 0) / (east - west);
    this.#isByLatitude = !(ofLongitude < ofLatitude || north - south < LEAST_EXTENT);
    this.#lowest = this.#isByLatitude ? south : west;
    this.#highest = this.#isByLatitude ? north : east;
    this.#ends = this.#toEnds(lines);
    const extent = this.#highest - this.#lowest;
    const met = this.#isByLatitude ? ofLatitude : ofLongitude;
    const bands = extent < LEAST_EXTENT ? 1 : Math.max(1, Math.floor(((LISTED - 1) * this.count) / met));
    this.#bandsPerDegree = bands === 1 ? 0 : bands / extent;
    this.#starts = new Uint32Array(bands + 1);
    this.#listed = this.#list();
  }

  #toEnds(lines: readonly Line[]): Float64Array {
    const edges = lines.flatMap((line) => (line.length === 1 ? [[line[0], line[0]]] : pairsOf(line)));
    const order = this.#isByLatitude ? [0, 1] : [1, 0];
    return Float64Array.from(
      edges.flatMap((edge) => edge.flatMap((point) => order.map((at) => (point as Point)[at] as number))),
    );
  }

  /** Counts the edges of each band, and then lists them. */
  #list(): Uint32Array {
    const starts = this.#starts;
    this.#eachBand((_edge, band) => {
      starts[band + 1] = (starts[band + 1] as number) + 1;
    });
    for (let band = 1; band < starts.length; band++)
      starts[band] = (starts[band] as number) + (starts[band - 1] as number);
    const listed = new Uint32Array(starts.at(-1) as number);
    const ends = starts.slice();
    this.#eachBand((edge, band) => {
      const at = ends[band] as number;
      listed[at] = edge;
      ends[band] = at + 1;
    });
    return listed;
  }

  #eachBand(note: (edge: number, band: number) => void): void {
    for (let edge = 0; edge < this.count; edge++) {
      const y1 = this.#ends[edge * ENDS + 1] as number;
      const y2 = this.#ends[edge * ENDS + 3] as number;
      const last = this.#bandOf(Math.max(y1, y2));
      for (let band = this.#bandOf(Math.min(y1, y2)); band <= last; band++) note(edge, band);
    }
  }

  #bandOf(y: number): number {
    const band = Math.floor((y - this.#lowest) * this.#bandsPerDegree);
    return Math.max(0, Math.min(this.#starts.length - 2, band));
  }

  get count(): number {
    return this.#ends.length / ENDS;
  }

  /** Whether the lines are rings around the point: of the rings, an odd number. A point on an edge is inside. */
  enclose([lon, lat]: Point): boolean {
    const x = (this.#isByLatitude ? lon : lat) as number;
    const y = (this.#isByLatitude ? lat : lon) as number;
    if (y < this.#lowest || y > this.#highest) return false;
    const band = this.#bandOf(y);
    const ends = this.#ends;
    let isInside = false;
    for (let at = this.#starts[band] as number; at < (this.#starts[band + 1] as number); at++) {
      const edge = (this.#listed[at] as number) * ENDS;
      const y1 = (ends[edge + 1] as number) - y;
      const y2 = (ends[edge + 3] as number) - y;
      if ((y1 > 0 && y2 > 0) || (y1 < 0 && y2 < 0)) continue;
      const x1 = (ends[edge] as number) - x;
      const x2 = (ends[edge + 2] as number) - x;
      const side = orient2d(x1, y1, x2, y2, 0, 0);
      if (side === 0 && (x1 <= 0 || x2 <= 0) && (x1 >= 0 || x2 >= 0)) return true;
      // The end of one edge is the beginning of another one, and counts once.
      if ((y1 <= 0 && y2 > 0 && side > 0) || (y2 <= 0 && y1 > 0 && side < 0)) isInside = !isInside;
    }
    return isInside;
  }

  /** Whether one of the edges that may reach into the box meets the test. It may be asked twice about an edge. */
  some({ west, south, east, north }: Box, test: (a: Point, b: Point) => boolean): boolean {
    const [low, high] = this.#isByLatitude ? [south, north] : [west, east];
    const [left, right] = this.#isByLatitude ? [west, east] : [south, north];
    if (high < this.#lowest || low > this.#highest) return false;
    const ends = this.#ends;
    const last = this.#starts[this.#bandOf(high) + 1] as number;
    for (let at = this.#starts[this.#bandOf(low)] as number; at < last; at++) {
      const edge = (this.#listed[at] as number) * ENDS;
      const x1 = ends[edge] as number;
      const y1 = ends[edge + 1] as number;
      const x2 = ends[edge + 2] as number;
      const y2 = ends[edge + 3] as number;
      if (Math.max(x1, x2) < left || Math.min(x1, x2) > right) continue;
      if (Math.max(y1, y2) < low || Math.min(y1, y2) > high) continue;
      if (this.#isByLatitude ? test([x1, y1], [x2, y2]) : test([y1, x1], [y2, x2])) return true;
    }
    return false;
  }
}

const pairsOf = (line: Line): Point[][] => line.slice(1).map((point, index) => [line[index] as Point, point]);

/** In degrees of longitude (0) or latitude (1). */
function lengthOf(lines: readonly Line[], axis: 0 | 1): number {
  let sum = 0;
  for (const line of lines) {
    for (let at = 1; at < line.length; at++) {
      sum += Math.abs(((line[at] as Point)[axis] as number) - ((line[at - 1] as Point)[axis] as number));
    }
  }
  return sum;
}

export function boxOf(points: readonly Point[]): Box {
  let west = Infinity;
  let south = Infinity;
  let east = -Infinity;
  let north = -Infinity;
  for (const [lon, lat] of points as [number, number][]) {
    west = Math.min(west, lon);
    south = Math.min(south, lat);
    east = Math.max(east, lon);
    north = Math.max(north, lat);
  }
  return { west, south, east, north };
}
