/** Sends a report: in one piece if it is short, otherwise piece by piece as it is computed. */
import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import { callerOf } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { consumeForBytes } from '../platform/http/rate-limit.js';
import { sendJson } from '../platform/http/responses.js';
import { readHistory } from '../platform/mongo/driver/list-queue.js';
import { computeReport } from './compute.js';
import type { ObjectSelection } from './objects.js';
import type { Report } from './report.js';
import type { ReportWriter } from './writers.js';

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
  const { report, selection, writer, type } = sending;
  await readHistory(listDatabaseFor(deps, req, res), async (reader) => {
    const pieces = createPieces(res, type);
    const asked = { report, selection, caller: callerOf(res) };
    const { totals, cut } = await computeReport(deps, reader, asked, {
      begin: () => pieces.add(writer.begin()),
      row(object, row) {
        pieces.add(writer.row(object, row));
        return pieces.areDue() ? pieces.send() : null;
      },
      async endObject() {
        if (pieces.areDue()) await pieces.send();
        deps.ending.throwIfAborted();
      },
      hasSent: pieces.haveBegun,
    });
    await pieces.end(writer.end(totals, cut));
  });
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
