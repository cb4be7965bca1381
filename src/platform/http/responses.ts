/** Writes responses: JSON with its length, an entity with `success`, a page with a link to the next one. */
import type { Request, Response } from 'express';
import { type ApiError, errorBody } from '../../core/errors.js';
import type { JsonObject } from '../../core/json.js';
import type { Page } from '../../core/list.js';
import { type JsonPage, LAYOUT } from '../mongo/bson/raw-cursor.js';
import { compress } from './server/compression.js';
import { countUnsentBytes, onFinished } from './server/unsent-bytes.js';

const JSON_TYPE = 'application/json; charset=utf-8';
const SUCCESS_TEXT = ',"success":true}';
const SUCCESS = Buffer.from(SUCCESS_TEXT);

/** Success is always 200 with a body, never 204 (docs/reference/http-api.md). */
export function sendJson(res: Response, body: Buffer | string, status = 200, type = JSON_TYPE): void {
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  const refusal = countUnsentBytes(res, bytes);
  if (refusal === null) endJson(res, body, bytes, status, type);
  else sendError(res, refusal);
}

export function sendError(res: Response, error: ApiError): void {
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
  const text = JSON.stringify(errorBody(error));
  endJson(res, text, Buffer.byteLength(text), error.status);
}

function endJson(res: Response, body: Buffer | string, bytes: number, status: number, type = JSON_TYPE): void {
  res.statusCode = status;
  res.setHeader('Content-Type', type);
  const compressed = compress(res, body, bytes);
  if (compressed === null) end(res, body, bytes);
  else void compressed.then((smaller) => endCompressed(res, smaller) || end(res, body, bytes));
}

function end(res: Response, body: Buffer | string, bytes: number): void {
  res.setHeader('Content-Length', bytes);
  // Node sends text in one write with the header, a buffer in a second one.
  res.end(body);
}

function endCompressed(res: Response, body: Buffer | null): boolean {
  if (body === null) return false;
  res.setHeader('Content-Encoding', 'gzip');
  end(res, body, body.length);
  return true;
}

/** Sends an entity with `success` as its last key. */
export function sendEntity(res: Response, entity: JsonObject): void {
  sendJson(res, JSON.stringify(entity).slice(0, -1) + SUCCESS_TEXT);
}

/** Like `sendEntity`, for serialized JSON. */
export function sendEntityJson(res: Response, json: Buffer): void {
  sendJson(res, Buffer.concat([json.subarray(0, json.length - 1), SUCCESS]));
}

/** Sends a short list, laid out as every list. */
export function sendArray(res: Response, items: readonly object[]): void {
  const text = items.map((item) => JSON.stringify(item)).join(LAYOUT.between);
  sendJson(res, items.length === 0 ? LAYOUT.empty : `${LAYOUT.begin}${text}${LAYOUT.end}`);
}

/** The address of a path of Vigil as clients reach it, which may be below a path of another site. */
export const toAddress = (req: Request, path: string): string => `${req.app.locals.basePath}${path}`;

/** Sends a page. If it is full, or cut because of its size, `Link` names the next page (RFC 8288). */
export function sendPage(req: Request, res: Response, query: Page, page: JsonPage): void {
  const next = toNextPage(query, page);
  if (next !== null) {
    const [path, search] = req.originalUrl.split('?', 2);
    const parameters = new URLSearchParams(search);
    parameters.delete('offset');
    for (const [name, value] of Object.entries(next)) parameters.set(name, value);
    res.setHeader('Link', `<${toAddress(req, `${path}?${parameters}`)}>; rel="next"`);
  }
  // The page was counted as unsent when it was read: `endJson` must not count it again.
  if (page.release !== undefined) onFinished(res, page.release);
  endJson(res, page.body, page.body.length, 200);
}

/** The parameters of the next page: by key, which costs the same at any depth, or in another order by its place. */
function toNextPage(query: Page, { count, lastId, isCut = false }: JsonPage): Record<string, string> | null {
  if (lastId === null || !(isCut || count === query.limit)) return null;
  if (query.sort === null) return { after: lastId };
  return isCut ? { offset: String(query.offset + count) } : null;
}
