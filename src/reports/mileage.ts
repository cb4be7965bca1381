/** Mileage: how far an object went in each part of an interval, how long it moved and stood. */
import type { Stop, Trip, TripRules } from '../history/trips.js';
import { POSITION_FIELDS } from '../packets/position.js';
import { divide, partAt, partEnd, type ReportInterval } from './interval.js';
import { type Moved, Movement } from './movement.js';
import type { Column, Reading, Report, Row } from './report.js';

const COLUMNS: readonly Column[] = [
  { name: 'from', unit: 'time' },
  { name: 'to', unit: 'time' },
  { name: 'distance', unit: 'm', total: 'sum' },
  { name: 'trips', unit: 'count', total: 'sum' },
  { name: 'movingTime', unit: 'ms', total: 'sum' },
  { name: 'stops', unit: 'count', total: 'sum' },
  { name: 'standingTime', unit: 'ms', total: 'sum' },
  { name: 'maxSpeed', unit: 'km/h', total: 'max' },
];

export const mileageReport = (interval: ReportInterval, rules: TripRules): Report => ({
  name: 'mileage',
  needs: 'track',
  interval,
  columns: COLUMNS,
  fields: POSITION_FIELDS,
  open:
    () =>
    (_object, { countRow }) => {
      for (let part = 0; part < interval.starts.length; part++) countRow();
      return new MileageReading(interval, rules);
    },
});

interface Part {
  distanceM: number;
  trips: number;
  movingMs: number;
  stops: number;
  standingMs: number;
  maxSpeed: number | null;
}

/** A trip or a stop counts where it begins; its distance and its duration are divided where parts meet. */
class MileageReading implements Reading {
  readonly #interval: ReportInterval;
  readonly #movement: Movement;
  readonly #parts: readonly Part[];
  /** The distance travelled up to the start of each part. */
  readonly #travelledM: number[] = [];

  constructor(interval: ReportInterval, rules: TripRules) {
    this.#interval = interval;
    this.#parts = interval.starts.map(() => ({
      distanceM: 0,
      trips: 0,
      movingMs: 0,
      stops: 0,
      standingMs: 0,
      maxSpeed: null,
    }));
    this.#movement = new Movement(rules, { onTrip: this.#onTrip, onStop: this.#onStop, onMoved: this.#onMoved });
  }

  take(memory: Buffer, starts: readonly number[]): Promise<void> {
    return this.#movement.take(memory, starts);
  }

  finish(): Iterable<Row> {
    this.#movement.finish();
    return this.#rows();
  }

  *#rows(): Generator<Row> {
    for (const [index, part] of this.#parts.entries()) {
      yield {
        from: this.#interval.starts[index] as number,
        to: partEnd(this.#interval, index),
        distance: part.distanceM,
        trips: part.trips,
        movingTime: part.movingMs,
        stops: part.stops,
        standingTime: part.standingMs,
        maxSpeed: part.maxSpeed,
      };
    }
  }

  #onMoved = ({ fix, speed, last, fromM, toM }: Moved): void => {
    const { starts } = this.#interval;
    for (let next = this.#travelledM.length; (starts[next] ?? Infinity) <= fix.timeMs; next++) {
      const share = last === null ? 1 : ((starts[next] as number) - last.timeMs) / (fix.timeMs - last.timeMs);
      this.#travelledM.push(fromM + (toM - fromM) * share);
    }
    const part = this.#partAt(fix.timeMs);
    if (speed >= 0) part.maxSpeed = Math.max(part.maxSpeed ?? 0, speed);
  };

  #onTrip = ({ fromMs, toMs, distanceM, startTravelledM }: Trip): void => {
    this.#partAt(fromMs).trips++;
    let coveredM = 0;
    divide(this.#interval, { fromMs, toMs }, (index, ms, next) => {
      const part = this.#parts[index] as Part;
      const reachedM = next === null ? distanceM : Math.round((this.#travelledM[next] as number) - startTravelledM);
      part.distanceM += reachedM - coveredM;
      part.movingMs += ms;
      coveredM = reachedM;
    });
  };

  #onStop = ({ fromMs, toMs }: Stop): void => {
    this.#partAt(fromMs).stops++;
    divide(this.#interval, { fromMs, toMs }, (index, ms) => {
      (this.#parts[index] as Part).standingMs += ms;
    });
  };

  #partAt(timeMs: number): Part {
    return this.#parts[partAt(this.#interval, timeMs)] as Part;
  }
}
