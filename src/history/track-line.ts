/**
 * The line of a track in bounded memory, simplified with the Douglas-Peucker algorithm: the weight of a point is its distance from the
 * line without it, and the points with the greatest weights are kept. Long lines are measured in blocks, which bounds the time.
 */
import { DEGREE_M, distanceM, longitudeScale } from '../core/geo.js';

/** Measuring a block takes at most half the square of this number of steps. */
const BLOCK_POINTS = 512;
/** More than the weight of any point that is not the end of a piece. */
const END_WEIGHT = 1e9;
/** Points nearer to the line than this are negligible. */
const NEGLIGIBLE_M = 0.01;
const MIN_CAPACITY = 16_384;

/** A position with its time. */
export type TrackPoint = readonly [longitude: number, latitude: number, timeMs: number];

export class TrackLine {
  readonly capacity: number;
  #length = 0;
  readonly #longitudes: Float64Array;
  readonly #latitudes: Float64Array;
  readonly #times: Float64Array;
  /** 1 where a point is not connected to the one before. */
  readonly #begins: Uint8Array;
  readonly #weights: Float64Array;
  #lastLongitude = Number.NaN;

  /** `points`: the number of points of the result. */
  constructor(points: number) {
    this.capacity = Math.max(MIN_CAPACITY, 4 * points);
    this.#longitudes = new Float64Array(this.capacity);
    this.#latitudes = new Float64Array(this.capacity);
    this.#times = new Float64Array(this.capacity);
    this.#begins = new Uint8Array(this.capacity);
    this.#weights = new Float64Array(this.capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** A full line must be reduced with `measure` and `keep` before the next point is added. */
  isFull(): boolean {
    return this.#length === this.capacity;
  }

  add(longitude: number, latitude: number, timeMs: number, isConnected: boolean): void {
    const index = this.#length++;
    this.#lastLongitude = isConnected && index > 0 ? nearest(longitude, this.#lastLongitude) : longitude;
    this.#longitudes[index] = this.#lastLongitude;
    this.#latitudes[index] = latitude;
    this.#times[index] = timeMs;
    this.#begins[index] = isConnected && index > 0 ? 0 : 1;
  }

  /** The blocks for `measure`, in order. None extends beyond a gap. */
  *blocks(): Generator<readonly [from: number, to: number]> {
    for (let from = 0; from < this.#length; ) {
      let to = from;
      while (to + 1 < this.#length && this.#begins[to + 1] === 0 && to - from < BLOCK_POINTS) to++;
      yield [from, to];
      // The end of a block is the beginning of the next one of the same piece.
      from = to + 1 < this.#length && this.#begins[to + 1] === 0 ? to : to + 1;
    }
  }

  /**
   * How many of the measured points to keep. The ends of blocks are always kept. If pieces were cut into several blocks, half of the
   * points are dropped, and the rest must be measured again.
   */
  sizeToKeep(points: number): number {
    let sinceBegin = 0;
    for (let index = 0; index < this.#length; index++) {
      sinceBegin = this.#begins[index] === 1 ? 0 : sinceBegin + 1;
      if (sinceBegin > BLOCK_POINTS) return Math.max(points, Math.ceil(this.#length / 2));
    }
    return points;
  }

  /** Computes the weights of the points of a block. */
  measure(from: number, to: number): void {
    const [, reach] = to - from < 2 ? [from, this.#chord(from, to)] : this.#farthest(from, to);
    // Ends are kept; if there are too many pieces, those that reach farthest.
    this.#weights[from] = this.#weights[to] = END_WEIGHT + Math.max(reach, this.#chord(from, to));
    const open: [from: number, to: number, maxWeight: number][] = [[from, to, Number.MAX_VALUE]];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [begin, end, maxWeight] = next;
      if (end - begin < 2) continue;
      const [farthest, distance] = this.#farthest(begin, end);
      if (distance < NEGLIGIBLE_M) {
        // On a straight road, continuing would take the square of the number of points.
        this.#weights.fill(distance, begin + 1, end);
        continue;
      }
      // A point never weighs more than the one that split the line before.
      const weight = Math.min(maxWeight, distance);
      this.#weights[farthest] = weight;
      open.push([begin, farthest, weight], [farthest, end, weight]);
    }
  }

  #chord(begin: number, end: number): number {
    const longitudes = this.#longitudes;
    const latitudes = this.#latitudes;
    const positionAt = (index: number) => ({
      longitude: longitudes[index] as number,
      latitude: latitudes[index] as number,
    });
    return distanceM(positionAt(begin), positionAt(end));
  }

  #farthest(begin: number, end: number): [index: number, distanceM: number] {
    const longitudes = this.#longitudes;
    const latitudes = this.#latitudes;
    const x0 = longitudes[begin] as number;
    const y0 = latitudes[begin] as number;
    const scale = longitudeScale(y0);
    const dx = ((longitudes[end] as number) - x0) * scale;
    const dy = (latitudes[end] as number) - y0;
    const square = dx * dx + dy * dy;
    let farthest = begin + 1;
    let maxSquare = -1;
    for (let index = begin + 1; index < end; index++) {
      const x = ((longitudes[index] as number) - x0) * scale;
      const y = (latitudes[index] as number) - y0;
      const along = square === 0 ? 0 : Math.min(1, Math.max(0, (x * dx + y * dy) / square));
      const distance = (x - along * dx) ** 2 + (y - along * dy) ** 2;
      if (distance > maxSquare) [farthest, maxSquare] = [index, distance];
    }
    return [farthest, Math.sqrt(maxSquare) * DEGREE_M];
  }

  /** Keeps this many points: those with the greatest weights, the first among equals. */
  keep(points: number): void {
    if (this.#length <= points) return;
    const sorted = this.#weights.slice(0, this.#length).sort();
    const least = sorted[this.#length - points] as number;
    let equal = points - this.#count((weight) => weight > least);
    let kept = 0;
    let begins = 0;
    for (let index = 0; index < this.#length; index++) {
      begins |= this.#begins[index] as number;
      const weight = this.#weights[index] as number;
      if (weight < least || (weight === least && equal-- <= 0)) continue;
      this.#longitudes[kept] = this.#longitudes[index] as number;
      this.#latitudes[kept] = this.#latitudes[index] as number;
      this.#times[kept] = this.#times[index] as number;
      this.#begins[kept++] = begins;
      begins = 0;
    }
    this.#length = kept;
  }

  #count(fits: (weight: number) => boolean): number {
    let count = 0;
    for (let index = 0; index < this.#length; index++) if (fits(this.#weights[index] as number)) count++;
    return count;
  }

  /** The pieces of at least two points, split where they cross the antimeridian (RFC 7946, 3.1.9). */
  pieces(): TrackPoint[][] {
    const pieces: TrackPoint[][] = [];
    let piece: TrackPoint[] = [];
    for (let index = 0; index < this.#length; index++) {
      if (this.#begins[index] === 1) {
        piece = [];
        pieces.push(piece);
      } else piece = this.#crossed(index, piece, pieces);
      piece.push([
        wrapped(this.#longitudes[index] as number),
        this.#latitudes[index] as number,
        this.#times[index] as number,
      ]);
    }
    return pieces.filter(({ length }) => length > 1);
  }

  /** The piece that a point belongs to: a new one where the line to it crosses the antimeridian. */
  #crossed(index: number, piece: TrackPoint[], pieces: TrackPoint[][]): TrackPoint[] {
    const from = this.#longitudes[index - 1] as number;
    const to = this.#longitudes[index] as number;
    const turn = turnsOf(from);
    const next = turnsOf(to);
    if (turn === next) return piece;
    const border = Math.max(turn, next) * 360 - 180;
    const share = (border - from) / (to - from);
    const between = (values: Float64Array): number =>
      (values[index - 1] as number) + share * ((values[index] as number) - (values[index - 1] as number));
    const latitude = between(this.#latitudes);
    const timeMs = Math.round(between(this.#times));
    piece.push([next > turn ? 180 : -180, latitude, timeMs]);
    const begun: TrackPoint[] = [[next > turn ? -180 : 180, latitude, timeMs]];
    pieces.push(begun);
    return begun;
  }
}

/** The same meridian, as near to the other one as possible, since a line takes the short way around the globe. */
const nearest = (longitude: number, other: number): number => longitude + 360 * Math.round((other - longitude) / 360);

const turnsOf = (longitude: number): number => Math.floor((longitude + 180) / 360);
/** Between -180 and 180, rounded to remove errors of the calculation. */
const wrapped = (longitude: number): number => {
  const turns = turnsOf(longitude);
  return turns === 0 ? longitude : Math.round((longitude - 360 * turns) * 1e9) / 1e9;
};
