/** Sends a report: in one piece if it is short, otherwise piece by piece as it is computed. */
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { toApiError } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import { callerOf } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { consumeForBytes } from '../platform/http/rate-limit.js';
import { sendJson } from '../platform/http/responses.js';
import { readHistory } from '../platform/mongo/driver/list-queue.js';
import { eachInSlices } from '../platform/slices.js';
import { findReportObjects, type ObjectSelection } from './objects.js';
import { isReportLimit, type Report, readReport } from './report.js';
import { Totals } from './totals.js';
import type { Cut, ReportWriter } from './writers.js';

export interface ReportDeps extends ListDeps {
  readonly now: () => number;
  readonly log: Logger;
  /** Aborted when the service stops. */
  readonly ending: AbortSignal;
}

export interface Sending {
  readonly report: Report;
  readonly selection: ObjectSelection;
  readonly writer: ReportWriter;
  readonly type: string;
}

/** Throws errors until the first piece was sent, and a 413 if not one object could be read; later ones end the report with a note. */
export async function sendReport(deps: ReportDeps, req: Request, res: Response, sending: Sending): Promise<void> {
  const database = listDatabaseFor(deps, req, res);
  await readHistory(database, async (reader) => {
    const { report, selection, writer, type } = sending;
    const caller = callerOf(res);
    const objects = await findReportObjects(reader, caller, selection, report.needs);
    const totals = new Totals(report.columns);
    const pieces = createPieces(res, type);
    let cut: Cut | null = null;
    pieces.add(writer.begin());
    try {
      for await (const { object, rows } of readReport(reader, report, { objects, caller })) {
        await eachInSlices(rows, (row) => {
          reader.stop?.throwIfAborted();
          totals.add(row);
          pieces.add(writer.row(object, row));
          return pieces.areDue() ? pieces.send() : null;
        });
        totals.objects++;
        if (pieces.areDue()) await pieces.send();
        deps.ending.throwIfAborted();
      }
    } catch (error) {
      const isTold = isReportLimit(error) ? totals.objects > 0 : pieces.haveBegun();
      if (reader.stop?.aborted || !isTold) throw error;
      cut = { reason: reasonOf(deps, error), objects: objects.length - totals.objects };
    }
    await pieces.end(writer.end(totals, cut));
  });
}

function reasonOf({ log }: ReportDeps, thrown: unknown): string {
  const error = toApiError(thrown);
  if (error.status === 500) log.error({ err: error.cause }, 'report ended early: internal error');
  return error.status === 500 ? 'internal error' : error.message;
}

function createPieces(res: Response, type: string) {
  let texts: string[] = [];
  let length = 0;
  let sinceMs = clock.steadyMs();
  const take = (): Buffer => {
    const piece = Buffer.from(texts.join(''));
    texts = [];
    length = 0;
    sinceMs = clock.steadyMs();
    return piece;
  };
  return {
    haveBegun: () => res.headersSent,
    add(text: string): void {
      if (text === '') return;
      texts.push(text);
      length += text.length;
    },
    areDue: () =>
      length >= LIMITS.reportPieceBytes || (length > 0 && clock.steadyMs() - sinceMs >= LIMITS.reportPieceMs),
    send: () => write(res, type, take()),
    async end(text: string): Promise<void> {
      texts.push(text);
      if (!res.headersSent) {
        sendJson(res, take(), 200, type);
        return;
      }
      await write(res, type, take());
      res.end();
    },
  };
}

/** Resolves when the piece was written, so that reading keeps the client's pace. */
async function write(res: Response, type: string, piece: Buffer): Promise<void> {
  if (!res.headersSent) {
    res.statusCode = 200;
    res.setHeader('Content-Type', type);
    // Proxies must not buffer it.
    res.setHeader('X-Accel-Buffering', 'no');
  }
  if (res.destroyed) return;
  await new Promise<void>((resolve) => {
    const onDone = (): void => {
      res.off('close', onDone);
      resolve();
    };
    res.once('close', onDone);
    res.write(piece, onDone);
  });
  consumeForBytes(res, piece.length);
}
