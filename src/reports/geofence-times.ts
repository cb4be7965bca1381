/** How long objects were in geofences, and how often they came. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import { type Caller, mayCall, scopeOf } from '../core/access.js';
import { tooLarge } from '../core/errors.js';
import { createFences, toFenceShapes } from '../core/geofence.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { readableFilter } from '../entities/through-objects.js';
import type { TripRules } from '../history/trips.js';
import { POSITION_FIELDS } from '../packets/position.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';
import { mapInSlices } from '../platform/slices.js';
import { divide, partAt, partEnd, type ReportInterval } from './interval.js';
import { type Moved, Movement } from './movement.js';
import type { Column, Reading, Report, Row } from './report.js';

const COLUMNS: readonly Column[] = [
  { name: 'from', unit: 'time' },
  { name: 'to', unit: 'time' },
  { name: 'geofence', unit: 'text' },
  { name: 'geofenceName', unit: 'text' },
  { name: 'visits', unit: 'count', total: 'sum' },
  { name: 'duration', unit: 'ms', total: 'sum' },
  { name: 'arrival', unit: 'time' },
  { name: 'departure', unit: 'time' },
];

export interface Fence {
  readonly id: string;
  readonly name: string;
  readonly shape: JsonObject;
}

/** The geofences that the caller may read; `ids`: only these. Throws 413, 503. */
async function findFences(
  database: Database,
  caller: Caller,
  ids: readonly string[] | null,
): Promise<readonly Fence[]> {
  const store = builtInStore('geofences');
  const conditions: Filter<Document>[] = [await readableFilter(database, store, scopeOf(caller))];
  if (ids !== null) conditions.push({ _id: { $in: ids.map((id) => new ObjectId(id)) } });
  // Other members of a geometry may be large.
  const projection = { name: 1, radius: 1, 'geometry.type': 1, 'geometry.coordinates': 1 };
  return mapDriverErrors(async () => {
    const cursor = collectionOf(database, store).find(
      { $and: conditions },
      { projection, batchSize: LIMITS.reportFencesRead, maxTimeMS: LIMITS.databaseOperationMs },
    );
    const fences: Fence[] = [];
    let points = 0;
    for await (const one of cursor) {
      database.stop?.throwIfAborted();
      const id = String(one._id);
      if (!mayCall(caller, 'GET', ['geofences', id])) continue;
      fences.push({ id, name: String(one.name ?? ''), shape: toPlain(one) as JsonObject });
      points += countPoints(one.geometry?.coordinates);
      if (fences.length > LIMITS.reportGeofences) throw tooMuch(`${LIMITS.reportGeofences} geofences`);
      if (points > LIMITS.reportFencePoints) throw tooMuch(`${LIMITS.reportFencePoints} points of geofences`);
    }
    return fences;
  }, LIMITS.databaseOperationMs);
}

const tooMuch = (most: string): Error => tooLarge(`a report covers at most ${most}: name them with geofences`);

/** Of coordinates of any depth. */
function countPoints(coordinates: unknown): number {
  if (!Array.isArray(coordinates)) return 0;
  if (!Array.isArray(coordinates[0])) return 1;
  return coordinates.reduce<number>((sum, one) => sum + countPoints(one), 0);
}

/** `ids`: of these geofences only. */
export function geofenceReport(interval: ReportInterval, rules: TripRules, ids: readonly string[] | null): Report {
  return {
    name: 'geofences',
    needs: 'track',
    interval,
    columns: COLUMNS,
    fields: POSITION_FIELDS,
    async open(database, caller) {
      const fences = await findFences(database, caller, ids);
      const shapes = await mapInSlices(fences, ({ shape }, index) => toFenceShapes(shape, index));
      const findInside = createFences(shapes.flat());
      return (_object, { countRow }) => new GeofenceReading(interval, rules, { fences, findInside, countRow });
    },
  };
}

interface Sum {
  visits: number;
  durationMs: number;
  arrivalMs: number;
  departureMs: number;
}

interface Finding {
  readonly fences: readonly Fence[];
  readonly findInside: ReturnType<typeof createFences>;
  readonly countRow: () => void;
}

/** An object is inside from the first position inside to the first one outside, or to the last one inside before a gap or a jump. */
class GeofenceReading implements Reading {
  readonly #interval: ReportInterval;
  readonly #gapMs: number;
  readonly #fences: readonly Fence[];
  readonly #findInside: ReturnType<typeof createFences>;
  readonly #countRow: () => void;
  readonly #movement: Movement;
  /** Since when it is inside, by geofence. */
  readonly #since = new Map<number, number>();
  /** By part, then by geofence. */
  readonly #sums: readonly Map<number, Sum>[];
  #inside: ReadonlySet<number> = new Set();
  #lastMs = 0;

  constructor(interval: ReportInterval, rules: TripRules, { fences, findInside, countRow }: Finding) {
    this.#interval = interval;
    this.#gapMs = rules.gapMs;
    this.#fences = fences;
    this.#findInside = findInside;
    this.#countRow = countRow;
    this.#sums = interval.starts.map(() => new Map<number, Sum>());
    this.#movement = new Movement(rules, { onMoved: this.#onMoved });
  }

  take(memory: Buffer, starts: readonly number[]): Promise<void> {
    return this.#movement.take(memory, starts);
  }

  finish(): Iterable<Row> {
    this.#movement.finish();
    for (const fence of [...this.#since.keys()]) this.#leave(fence, this.#lastMs);
    return this.#rows();
  }

  *#rows(): Generator<Row> {
    for (const [part, sums] of this.#sums.entries()) {
      for (const fence of [...sums.keys()].sort((a, b) => a - b)) {
        yield this.#toRow(part, fence, sums.get(fence) as Sum);
      }
    }
  }

  #toRow(part: number, fence: number, { visits, durationMs, arrivalMs, departureMs }: Sum): Row {
    const { id, name } = this.#fences[fence] as Fence;
    return {
      from: this.#interval.starts[part] as number,
      to: partEnd(this.#interval, part),
      geofence: id,
      geofenceName: name,
      visits,
      duration: durationMs,
      arrival: arrivalMs,
      departure: departureMs,
    };
  }

  #onMoved = ({ fix, step, last }: Moved): void => {
    const isThere = last !== null && last.latitude === fix.latitude && last.longitude === fix.longitude;
    const inside = isThere ? this.#inside : this.#findInside({ lat: fix.latitude, lon: fix.longitude });
    const isJump = step !== 'travel';
    const isSilent = last !== null && fix.timeMs - last.timeMs > this.#gapMs;
    for (const fence of [...this.#since.keys()]) {
      if (!inside.has(fence) || isJump) this.#leave(fence, isJump || isSilent ? this.#lastMs : fix.timeMs);
    }
    for (const fence of inside) if (!this.#since.has(fence)) this.#since.set(fence, fix.timeMs);
    this.#inside = inside;
    this.#lastMs = fix.timeMs;
  };

  #newSum(startMs: number): Sum {
    this.#countRow();
    return { visits: 0, durationMs: 0, arrivalMs: startMs, departureMs: startMs };
  }

  #leave(fence: number, toMs: number): void {
    const fromMs = this.#since.get(fence) as number;
    this.#since.delete(fence);
    const arrived = partAt(this.#interval, fromMs);
    divide(this.#interval, { fromMs, toMs }, (part, ms) => {
      const sums = this.#sums[part] as Map<number, Sum>;
      const startMs = part === arrived ? fromMs : (this.#interval.starts[part] as number);
      const sum = sums.get(fence) ?? this.#newSum(startMs);
      if (part === arrived) sum.visits++;
      sum.durationMs += ms;
      sum.departureMs = startMs + ms;
      sums.set(fence, sum);
    });
  }
}
