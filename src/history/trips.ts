/** Finds the stops of an object and the trips between them from its positions in the order of time. */
import { type Coordinates, distanceM } from '../core/geo.js';

export interface Stop extends Coordinates {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Trip {
  readonly fromMs: number;
  readonly toMs: number;
  /** Whole metres, so that sums of trips add up. */
  readonly distanceM: number;
  /** `TripFinder.travelledM` at its start. */
  readonly startTravelledM: number;
  /** km/h; null if no packet has a speed that the object can have had. */
  readonly maxSpeed: number | null;
  readonly start: Coordinates;
  readonly end: Coordinates;
}

export interface TripRules {
  /** An object that stays within this radius for this time has stopped. */
  readonly stopMs: number;
  readonly stopRadiusM: number;
  /** A trip ends at a longer gap after which the object is elsewhere. */
  readonly gapMs: number;
}

interface Seen extends Coordinates {
  readonly timeMs: number;
  /** The distance travelled so far. */
  readonly travelledM: number;
  /** The greatest speed since the trip began, or -1. */
  readonly maxSpeed: number;
}

/** What is added: `speed` in km/h, NaN if it is unknown. */
type Added = Coordinates & { readonly timeMs: number; readonly speed: number };

/** The maximum number of recent positions that are kept to detect a stop. */
const MAX_WINDOW = 10_000;

export class TripFinder {
  readonly #rules: TripRules;
  readonly #onStop: (stop: Stop) => void;
  readonly #onTrip: (trip: Trip) => void;
  /** The last positions that are near to the latest one. */
  #window: Seen[] = [];
  #windowStart = 0;
  #standing: { center: Coordinates; readonly fromMs: number } | null = null;
  #tripStart: Seen | null = null;
  #last: Seen | null = null;

  constructor(rules: TripRules, onStop: (stop: Stop) => void, onTrip: (trip: Trip) => void) {
    this.#rules = rules;
    this.#onStop = onStop;
    this.#onTrip = onTrip;
  }

  /** The distance travelled up to the last position, with the noise of stops. */
  get travelledM(): number {
    return this.#last?.travelledM ?? 0;
  }

  /** Adds a position, to which the object did not travel if it is a jump. Returns whether it is connected to the previous one. */
  add({ longitude, latitude, timeMs, speed }: Added, isJump = false): boolean {
    const { gapMs, stopRadiusM } = this.#rules;
    const last = this.#last;
    const stepM = last === null ? 0 : distanceM(last, { longitude, latitude });
    const isConnected = last !== null && timeMs - last.timeMs <= gapMs && !isJump;
    const isLost = last !== null && (isJump || (!isConnected && stepM > stopRadiusM));
    if (isLost) this.#end(last);
    // Only on the way: a trip begins with the last position of a stop.
    const before = isLost || this.#standing !== null ? -1 : (last?.maxSpeed ?? -1);
    const here: Seen = {
      longitude,
      latitude,
      timeMs,
      travelledM: this.travelledM + (isLost ? 0 : stepM),
      maxSpeed: speed > before ? speed : before,
    };
    this.#last = here;
    if (last === null || isLost) this.#begin(here);
    else if (this.#standing === null) this.#move(here);
    else if (distanceM(this.#standing.center, here) > stopRadiusM) this.#leave(last, here);
    return isConnected;
  }

  /** After the last position. */
  finish(): void {
    if (this.#last !== null) this.#end(this.#last);
  }

  #begin(here: Seen): void {
    this.#tripStart = here;
    this.#standing = null;
    this.#setWindow([here]);
  }

  #setWindow(window: Seen[]): void {
    this.#window = window;
    this.#windowStart = 0;
  }

  #move(here: Seen): void {
    const { stopMs, stopRadiusM } = this.#rules;
    const window = this.#window;
    window.push(here);
    const isTooLong = window.length - this.#windowStart > MAX_WINDOW;
    if (isTooLong) this.#windowStart++;
    while (distanceM(window[this.#windowStart] as Seen, here) > stopRadiusM) this.#windowStart++;
    const first = window[this.#windowStart] as Seen;
    if (here.timeMs - first.timeMs >= stopMs) this.#stand(first);
    else if (this.#windowStart > MAX_WINDOW) this.#setWindow(window.slice(this.#windowStart));
  }

  #stand(first: Seen): void {
    const near = this.#window.slice(this.#windowStart);
    const mean = (degreesOf: (seen: Seen) => number): number =>
      near.reduce((sum, seen) => sum + degreesOf(seen), 0) / near.length;
    // The mean of longitudes around the antimeridian would be on the other side of the globe.
    const isSplit = near.some(({ longitude }) => Math.abs(longitude - first.longitude) > 180);
    const center = isSplit
      ? first
      : { longitude: mean((seen) => seen.longitude), latitude: mean((seen) => seen.latitude) };
    this.#endTrip(first);
    this.#standing = { center, fromMs: first.timeMs };
    this.#setWindow([]);
  }

  #leave(last: Seen, here: Seen): void {
    this.#endStop(last);
    this.#tripStart = last;
    this.#setWindow([here]);
  }

  #end(last: Seen): void {
    if (this.#standing !== null) this.#endStop(last);
    else this.#endTrip(last);
    this.#tripStart = null;
  }

  #endStop({ timeMs }: Seen): void {
    if (this.#standing === null) return;
    const { center, fromMs } = this.#standing;
    this.#standing = null;
    this.#onStop({ longitude: center.longitude, latitude: center.latitude, fromMs, toMs: timeMs });
  }

  /** Trips shorter than the radius of a stop are noise of the receiver. */
  #endTrip(end: Seen): void {
    const start = this.#tripStart;
    this.#tripStart = null;
    if (start === null || end.travelledM - start.travelledM < this.#rules.stopRadiusM) return;
    this.#onTrip({
      fromMs: start.timeMs,
      toMs: end.timeMs,
      distanceM: Math.round(end.travelledM - start.travelledM),
      startTravelledM: start.travelledM,
      maxSpeed: end.maxSpeed < 0 ? null : end.maxSpeed,
      start: placeOf(start),
      end: placeOf(end),
    });
  }
}

const placeOf = ({ longitude, latitude }: Coordinates): Coordinates => ({ longitude, latitude });
