/** Finds the trips and stops of one object by the rules of its track: without jumps and impossible speeds. */
import { LIMITS } from '../core/limits.js';
import { type Fix, JumpFilter, type Step, toSpeed } from '../history/jumps.js';
import { type Stop, type Trip, TripFinder, type TripRules } from '../history/trips.js';
import { PositionReader } from '../packets/position.js';
import { clock } from '../platform/clock.js';

/** A position, and the way to it. */
export interface Moved {
  readonly fix: Fix;
  readonly step: Step;
  /** km/h; NaN if it is unknown. */
  readonly speed: number;
  /** The position before; null for the first one. */
  readonly last: Fix | null;
  /** The distance travelled up to the position before, and up to this one. */
  readonly fromM: number;
  readonly toM: number;
}

export interface MovementEvents {
  onTrip?(trip: Trip): void;
  onStop?(stop: Stop): void;
  /** After the trips and stops that it ends. */
  onMoved?(moved: Moved): void;
}

export class Movement {
  readonly #events: MovementEvents;
  readonly #position = new PositionReader();
  readonly #jumps: JumpFilter;
  readonly #finder: TripFinder;
  #last: Fix | null = null;

  constructor(rules: TripRules, events: MovementEvents) {
    this.#events = events;
    this.#finder = new TripFinder(
      rules,
      (stop) => events.onStop?.(stop),
      (trip) => events.onTrip?.(trip),
    );
    this.#jumps = new JumpFilter(this.#onFix);
  }

  async take(memory: Buffer, starts: readonly number[]): Promise<void> {
    let sinceMs = clock.steadyMs();
    for (const start of starts) {
      if (this.#position.read(memory, start)) this.#add();
      // After each packet: it may be in many geofences of many points.
      if (clock.steadyMs() - sinceMs < LIMITS.turnMs) continue;
      await clock.nextTurn();
      sinceMs = clock.steadyMs();
    }
  }

  finish(): void {
    this.#jumps.finish();
    this.#finder.finish();
  }

  #add(): void {
    const { longitude, latitude, timeMs, speed } = this.#position;
    if (!Number.isNaN(timeMs)) this.#jumps.add({ longitude, latitude, timeMs, speed });
  }

  #onFix = (fix: Fix, step: Step): void => {
    const last = this.#last;
    const speed = toSpeed(step === 'travel' ? last : null, fix);
    const fromM = this.#finder.travelledM;
    this.#finder.add({ ...fix, speed }, step !== 'travel');
    this.#last = fix;
    this.#events.onMoved?.({ fix, step, speed, last, fromM, toM: this.#finder.travelledM });
  };
}
