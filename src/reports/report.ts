/** What a report is: its columns, its rows, and how one object after the other is read for it. */
import type { Caller } from '../core/access.js';
import { tooLarge } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { ReportName } from '../core/report-kinds.js';
import { streamPackets } from '../packets/packet-stream.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { createWorkClock } from '../platform/mongo/driver/work-clock.js';
import type { ReportInterval } from './interval.js';
import type { Permission, ReportObject } from './objects.js';

/** A cell: a text, a time or a number in the unit of its column, or a place as longitude and latitude. */
export type Cell = string | number | null | readonly [longitude: number, latitude: number];

/** The cells of a row by the names of their columns. */
export type Row = Readonly<Record<string, Cell>>;

export interface Column {
  readonly name: string;
  readonly unit: 'text' | 'time' | 'place' | 'm' | 'ms' | 'km/h' | 'count' | 'share';
  /** What the totals have of it. */
  readonly total?: 'sum' | 'max';
}

/** Reads the packets of one object, in the order of time. */
export interface Reading {
  /** Absent where it is made of no packets: then none are read. */
  readonly take?: (memory: Buffer, starts: readonly number[]) => Promise<void>;
  /** The rows of the object, after its last packet, made one by one. */
  finish(): Iterable<Row>;
}

/** What a reading has beside its object. */
export interface ReadingContext {
  /** For what it needs from before the interval. */
  readonly database: Database;
  /** Call this for each row, before there is one more. Throws what `isReportLimit` tells. */
  readonly countRow: () => void;
}

/** Begins with an object. */
export type Begin = (object: ReportObject, context: ReadingContext) => Reading | Promise<Reading>;

export interface Report {
  readonly name: ReportName;
  readonly needs: Permission;
  readonly interval: ReportInterval;
  /** Beside those of the object. */
  readonly columns: readonly Column[];
  /** The fields of packets that it is computed from. */
  readonly fields: readonly string[];
  /** Reads what it needs beside packets. */
  open(database: Database, caller: Caller): Begin | Promise<Begin>;
  /** What the caller may not read, after the last object; absent where nothing of that kind can be. */
  readonly missing?: () => readonly string[];
}

export interface ObjectRows {
  readonly object: ReportObject;
  readonly rows: Iterable<Row>;
}

/** Thrown where a report would read more than it may: 413, or a note at the end of an answer that has begun. */
export const isReportLimit = (error: unknown): boolean => limitsReached.has(error as object);
const limitsReached = new WeakSet<object>();

function limitReached(what: string): Error {
  const error = tooLarge(`${what}: choose fewer objects or a shorter interval`);
  limitsReached.add(error);
  return error;
}

class RowCount {
  #all = 0;

  /** Returns what counts the rows of the next object. */
  startObject(): () => void {
    let own = 0;
    return () => {
      own++;
      if (own > LIMITS.reportObjectRows) throw limitReached(`more than ${LIMITS.reportObjectRows} rows of one object`);
      this.#all++;
      if (this.#all > LIMITS.reportAllRows) throw limitReached(`more than ${LIMITS.reportAllRows} rows`);
    };
  }
}

/** Reads one object after the other. Throws what `isReportLimit` tells, the abort reason when the client has left, and 503. */
export async function* readReport(
  database: Database,
  report: Report,
  { objects, caller }: { readonly objects: readonly ReportObject[]; readonly caller: Caller },
): AsyncGenerator<ObjectRows> {
  const work = createWorkClock(
    database,
    LIMITS.reportMs,
    () => limitReached(`the report takes longer than ${LIMITS.reportMs / 1_000} s to compute`) as never,
  );
  const { fromMs, toMs } = report.interval;
  const begin = await work.count(async () => report.open(work.database, caller));
  const rows = new RowCount();
  let packets = 0;
  for (const object of objects) {
    const context = { database: work.database, countRow: rows.startObject() };
    const reading = await work.count(async () => begin(object, context));
    const take = reading.take?.bind(reading);
    const query = { objectIds: [object.objectId], time: { from: fromMs, below: toMs + 1 } };
    const streaming = { ...query, fields: report.fields, readsAhead: true };
    const batches = take === undefined ? [] : streamPackets(work.database, streaming);
    for await (const { memory, starts } of batches) {
      packets += starts.length;
      if (packets > LIMITS.reportPackets) throw limitReached(`more than ${LIMITS.reportPackets} packets`);
      await work.count(async () => take?.(memory, starts));
    }
    yield { object, rows: reading.finish() };
  }
}
