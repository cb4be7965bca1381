/** How answers are written: bytes with their length, the standard 2xx of an entity, a page with its successor. */
import type { Request, Response } from 'express';
import type { JsonPage } from '../db/pages.js';
import { type ApiError, errorBody } from '../errors.js';
import type { JsonObject } from '../model/json.js';
import type { Page } from '../model/list.js';
import { countUnfinished, whenOver } from './unfinished.js';

const SUCCESS_TEXT = ',"success":true}';
const SUCCESS = Buffer.from(SUCCESS_TEXT);

/** interface, "Errors": success is 200 with `Content-Length`; there is never a 204 or an empty body. */
export function sendJson(res: Response, body: Buffer | string, status = 200): void {
  const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  const refusal = countUnfinished(res, bytes);
  if (refusal === null) endJson(res, body, bytes, status);
  else sendError(res, refusal);
}

/** An error as the interface says it. */
export function sendError(res: Response, error: ApiError): void {
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
  const text = JSON.stringify(errorBody(error));
  endJson(res, text, Buffer.byteLength(text), error.status);
}

function endJson(res: Response, body: Buffer | string, bytes: number, status: number): void {
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  // Text leaves in one piece with the header, bytes in a second one.
  res.setHeader('Content-Length', bytes);
  res.end(body);
}

/** One entity, whole, with `success` as its last key. */
export function sendEntity(res: Response, entity: JsonObject): void {
  sendJson(res, JSON.stringify(entity).slice(0, -1) + SUCCESS_TEXT);
}

/** The same for an entity that is JSON already. */
export function sendEntityJson(res: Response, json: Buffer): void {
  sendJson(res, Buffer.concat([json.subarray(0, json.length - 1), SUCCESS]));
}

/** A page; when it is full, `Link` names the next one (RFC 8288), found by key at constant cost. */
export function sendPage(req: Request, res: Response, query: Page, page: JsonPage): void {
  if (page.count === query.limit && page.lastId !== null && query.sort === null) {
    const [path, search] = req.originalUrl.split('?', 2);
    const next = new URLSearchParams(search);
    next.delete('offset');
    next.set('after', page.lastId);
    res.setHeader('Link', `<${path}?${next}>; rel="next"`);
  }
  // Counted since it was read.
  if (page.release !== undefined) whenOver(res, page.release);
  endJson(res, page.body, page.body.length, 200);
}
