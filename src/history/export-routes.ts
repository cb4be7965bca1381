/** The packets of an object as a file: CSV, NDJSON, GeoJSON, GPX or Parquet, of any length. */

import type { Request, Response } from 'express';
import type { Logger } from 'pino';
import { badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { ListQuery } from '../core/list.js';
import { completeInterval } from '../packets/default-interval.js';
import {
  ACCEPTED_TYPES,
  EXPORT_TYPES,
  type ExportFormat,
  formatOfType,
  parseFormat,
} from '../packets/export-format.js';
import type { ModelFinder } from '../packets/models.js';
import type { Source } from '../packets/source.js';
import { callerOf } from '../platform/http/caller.js';
import { type ListDeps, listDatabaseFor } from '../platform/http/list-caller.js';
import { parseListQuery } from '../platform/http/list-params.js';
import { parseCount, parseDurationParam, parseFlag, parseText, type Query } from '../platform/http/query-params.js';
import { consumeForBytes } from '../platform/http/rate-limit.js';
import type { CsvForm } from './exports/encoder.js';
import { type ExportPiece, type ExportSelection, exportPackets } from './exports/export.js';
import { createEncoder } from './exports/formats.js';
import { tellInterval } from './told-interval.js';

export interface ExportDeps extends ListDeps {
  readonly models: ModelFinder;
  readonly log: Logger;
  /** Aborted when the service stops. */
  readonly ending: AbortSignal;
}

/** Sends the packets of a source as a file. */
export type SendFile = (res: Response, source: Source) => Promise<void>;

/**
 * Returns how to answer a request for packets that asks for a file, null for one that asks for JSON. A summary (`meta`) is a file
 * only if the query names a format. Throws a 400 for an unknown format.
 */
export function createExports(deps: ExportDeps): (req: Request, kind: ListQuery['kind']) => SendFile | null {
  return (req, kind) => {
    const format = parseRequestedFormat(req);
    if (format === null || (kind === 'summary' && req.query.format === undefined)) return null;
    return (res, source) => sendExport(deps, req, res, { source, format });
  };
}

/** The format that a request asks for, by `format` or else by `Accept`; null for JSON. Throws a 400. */
function parseRequestedFormat(req: Request): ExportFormat | null {
  const text = parseText(req.query, 'format');
  if (text !== null && text !== '') return parseFormat(text);
  const { accept } = req.headers;
  // A quick check for the usual case: nearly all clients accept JSON or anything.
  if (accept === undefined || !/csv|json[l+]|ndjson|jsonlines|geo\+|gpx|parquet/i.test(accept)) return null;
  const type = req.accepts(['application/json', ...ACCEPTED_TYPES]);
  return type === false ? null : formatOfType(type);
}

function parseExportSelection(req: Request): ExportSelection {
  const page = parseListQuery(req.query);
  if (page.kind === 'summary') throw badRequest('meta: cannot be combined with format');
  if (page.sort !== null && page.sort.path !== 'time') {
    throw badRequest('sortBy: an export is sorted by time or -time');
  }
  return { ...page, limit: parseCount(req.query, 'limit') };
}

/** How a file of CSV is written: `bom`, `separator` and `decimal`. Throws a 400. */
export function parseCsvForm(query: Query): CsvForm {
  const separator = SEPARATORS.get(parseText(query, 'separator') || 'comma');
  if (separator === undefined) throw badRequest(`separator: expected ${[...SEPARATORS.keys()].join(', ')}`);
  const decimalSign = DECIMAL_SIGNS.get(parseText(query, 'decimal') || 'point');
  if (decimalSign === undefined) throw badRequest(`decimal: expected ${[...DECIMAL_SIGNS.keys()].join(', ')}`);
  if (separator === decimalSign) throw badRequest('decimal: a comma needs separator=semicolon or separator=tab');
  return { isForSpreadsheet: parseFlag(query, 'bom'), separator, decimalSign };
}

const SEPARATORS: ReadonlyMap<string, CsvForm['separator']> = new Map([
  ['comma', ','],
  ['semicolon', ';'],
  ['tab', '\t'],
]);
const DECIMAL_SIGNS: ReadonlyMap<string, CsvForm['decimalSign']> = new Map([
  ['point', '.'],
  ['comma', ','],
]);

/** Sends the packets of the source. Throws errors until the first byte was sent; later errors end the file. */
async function sendExport(
  deps: ExportDeps,
  req: Request,
  res: Response,
  { source, format }: { source: Source; format: ExportFormat },
): Promise<void> {
  const selection = parseExportSelection(req);
  const gapMs = parseDurationParam(req.query, 'gap', LIMITS.trackGapMs);
  const csv = parseCsvForm(req.query);
  const { parameters } = await deps.models.declarationsOf(source.modelId);
  const options = {
    only: selection.only,
    declared: parameters,
    name: source.ownId,
    gapMs,
    csv,
  };
  const database = listDatabaseFor(deps, req, res);
  const disconnected = database.listing?.caller.disconnectSignal() ?? null;
  const send = async (): Promise<void> => {
    const encoder = createEncoder(format, options);
    const interval = await completeInterval(database, [source.objectId], selection);
    tellInterval(res, selection, interval);
    const taken = { ...selection, ...interval };
    const pieces = exportPackets(database, source.objectId, taken, { encoder, ending: deps.ending });
    for await (const piece of pieces) {
      if (!res.headersSent) writeHead(res, format, source);
      if (!(await sendPiece(req, res, piece))) break;
      consumeForBytes(res, piece.body.length);
      if (piece.error !== null) logIncomplete(deps.log, res, piece.error);
    }
  };
  await deps.listQueues.export.run(callerOf(res), send, disconnected);
}

const TRAILER = 'X-Export';
const hasTrailer = ({ method, httpVersion }: Request): boolean => method === 'GET' && httpVersion === '1.1';

/** Of media types, where they are not only the character set. */
const TYPE_PARAMETERS: Readonly<Partial<Record<ExportFormat, string>>> = {
  csv: '; charset=utf-8; header=present',
  parquet: '',
};

function writeHead(res: Response, format: ExportFormat, { ownId, objectId }: Source): void {
  const type = EXPORT_TYPES[format];
  res.statusCode = 200;
  res.setHeader('Content-Type', `${type}${TYPE_PARAMETERS[format] ?? '; charset=utf-8'}`);
  // RFC 6266: a name in ASCII for old clients, and the exact name.
  const plain = ownId.replace(/[^\w.@+-]/g, '_') || objectId;
  const exact = encodeURIComponent(`${ownId}.${format}`).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16)}`,
  );
  res.setHeader('Content-Disposition', `attachment; filename="${plain}.${format}"; filename*=UTF-8''${exact}`);
  // RFC 9112, 7.1.2: only chunked responses have trailers.
  if (hasTrailer(res.req)) res.setHeader('Trailer', TRAILER);
  // Proxies must not buffer the file.
  res.setHeader('X-Accel-Buffering', 'no');
}

/** Sends a piece and returns whether more follow. Resolves when the piece was written, so that reading keeps the client's pace. */
async function sendPiece(req: Request, res: Response, piece: ExportPiece): Promise<boolean> {
  if (req.method === 'HEAD' || res.destroyed) {
    piece.release();
    if (!res.destroyed) res.end();
    return false;
  }
  await new Promise<void>((resolve) => {
    const onDone = (): void => {
      res.off('close', onDone);
      resolve();
    };
    res.once('close', onDone);
    if (piece.body.length === 0) onDone();
    else res.write(piece.body, onDone);
  });
  piece.release();
  if (piece.isLast) {
    const result = `${piece.error === null ? 'complete' : 'incomplete'}; packets=${piece.packets}`;
    if (hasTrailer(req)) res.addTrailers({ [TRAILER]: result });
    res.end();
  }
  return !piece.isLast && !res.destroyed;
}

function logIncomplete(
  log: Logger,
  res: Response,
  { status, message, cause }: NonNullable<ExportPiece['error']>,
): void {
  const details = { requestId: res.locals.requestId, status, reason: message, err: cause };
  if (status === 500) log.error(details, 'export ended early: internal error');
  else log.warn(details, 'export ended early');
}
