/** Computes a report: one object after the other, row by row, into what takes it. */
import type { Caller } from '../core/access.js';
import { toApiError } from '../core/errors.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { eachInSlices } from '../platform/slices.js';
import { findReportObjects, type ObjectSelection, type ReportObject } from './objects.js';
import { isReportLimit, type Report, type Row, readReport } from './report.js';
import { Totals } from './totals.js';
import type { Cut } from './writers.js';

export interface Asked {
  readonly report: Report;
  readonly selection: ObjectSelection;
  readonly caller: Caller;
}

/** What takes a report. */
export interface Sink {
  /** Before the first row: the objects are known. */
  begin(): void;
  row(object: ReportObject, row: Row): Promise<void> | null;
  /** After the last row of an object. */
  endObject(): Promise<void> | null;
  /** Whether something has left: errors end the report with a note from then on. */
  hasSent(): boolean;
}

export interface Computed {
  readonly totals: Totals;
  readonly cut: Cut | null;
}

export interface ComputeDeps {
  readonly log: { error(details: object, message: string): void };
}

/** Throws errors until something has left, and a 413 if not one object could be read; later ones are the reason of the cut. */
export async function computeReport(
  { log }: ComputeDeps,
  reader: Database,
  { report, selection, caller }: Asked,
  sink: Sink,
): Promise<Computed> {
  const objects = await findReportObjects(reader, caller, selection, report.needs);
  const totals = new Totals(report.columns);
  sink.begin();
  try {
    for await (const { object, rows } of readReport(reader, report, { objects, caller })) {
      await eachInSlices(rows, (row) => {
        reader.stop?.throwIfAborted();
        totals.add(row);
        return sink.row(object, row);
      });
      totals.objects++;
      await sink.endObject();
    }
    return { totals, cut: null };
  } catch (error) {
    const isTold = isReportLimit(error) ? totals.objects > 0 : sink.hasSent();
    if (reader.stop?.aborted || !isTold) throw error;
    return { totals, cut: { reason: reasonOf(log, error), objects: objects.length - totals.objects } };
  }
}

function reasonOf(log: ComputeDeps['log'], thrown: unknown): string {
  const error = toApiError(thrown);
  if (error.status === 500) log.error({ err: error.cause }, 'report ended early: internal error');
  return error.status === 500 ? 'internal error' : error.message;
}
