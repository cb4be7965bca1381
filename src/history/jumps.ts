/**
 * Finds positions that an object cannot have been at, and speeds that it cannot have had (docs/reference/history.md, "Tracks").
 * Receivers without a fix report a place far away for a moment, and AIS has numbers that mean "not available".
 */
import { type Coordinates, distanceM } from '../core/geo.js';

const KMH_PER_MS = 3.6;
/** Faster than airliners. */
const POSSIBLE_KMH = 1_200;
/** Receivers that report often move this far by noise. */
const NOISE_M = 100;
/** A packet may report a speed that is a little less than the one between two positions. */
const SPEED_FACTOR = 2;
/** ITU-R M.1371: the speed over ground of 1,023 tenths of a knot. */
const NOT_AVAILABLE_SPEED = 102.3;
/** Faster than cars and most trains. Larger numbers often mean "not available": 255, 511, 655.35, 999, 1023. */
const DOUBTFUL_KMH = 250;

export interface Fix extends Coordinates {
  readonly timeMs: number;
  /** km/h; NaN if the packet has none. */
  readonly speed: number;
}

/** The speed of a way in km/h. */
const kmhOf = (metres: number, ms: number): number => (metres / Math.max(0, ms)) * 1_000 * KMH_PER_MS;

/** Whether an object can get from one position to the other: not faster than an airliner, unless both packets say so. */
function isPossible(from: Fix, to: Fix): boolean {
  const metres = distanceM(from, to);
  if (metres <= NOISE_M) return true;
  const kmh = kmhOf(metres, to.timeMs - from.timeMs);
  return kmh <= POSSIBLE_KMH || kmh <= SPEED_FACTOR * Math.min(reportedSpeed(from), reportedSpeed(to));
}

const reportedSpeed = ({ speed }: Fix): number => (speed >= 0 ? speed : 0);

/** The speed that a packet reports, if it can be one; NaN otherwise. `last` is the position before. */
export function toSpeed(last: Fix | null, fix: Fix): number {
  if (!(fix.speed >= 0)) return Number.NaN;
  const isDoubtful = fix.speed === NOT_AVAILABLE_SPEED || fix.speed > DOUBTFUL_KMH;
  if (!isDoubtful) return fix.speed;
  if (last === null) return Number.NaN;
  return SPEED_FACTOR * kmhOf(distanceM(last, fix), fix.timeMs - last.timeMs) >= fix.speed ? fix.speed : Number.NaN;
}

/**
 * How an object came from the position before: it did not travel a jump. One from the first position to the last is unclear:
 * nobody knows which of both is wrong.
 */
export type Step = 'travel' | 'jump' | 'unclear jump';

export type OnFix = (fix: Fix, step: Step) => void;

/** Passes positions on, except those that an object cannot have reached and left again. */
export class JumpFilter {
  readonly #onFix: OnFix;
  #last: Fix | null = null;
  #count = 0;
  /** A position out of reach of the last one. */
  #doubtful: Fix | null = null;

  constructor(onFix: OnFix) {
    this.#onFix = onFix;
  }

  add(fix: Fix): void {
    const doubtful = this.#doubtful;
    if (this.#last === null || isPossible(this.#last, fix)) {
      this.#doubtful = null;
      this.#pass(fix, 'travel');
    } else if (doubtful !== null && isPossible(doubtful, fix)) {
      this.#doubtful = null;
      this.#pass(doubtful, 'jump');
      this.#pass(fix, 'travel');
    } else this.#doubtful = fix;
  }

  /** After the last position. */
  finish(): void {
    if (this.#doubtful !== null && this.#count === 1) this.#pass(this.#doubtful, 'unclear jump');
    this.#doubtful = null;
  }

  #pass(fix: Fix, step: Step): void {
    this.#last = fix;
    this.#count++;
    this.#onFix(fix, step);
  }
}
