/** How answers are written: bytes with their length, the standard 2xx of an entity, a page with its successor. */
import type { Request, Response } from 'express';
import type { JsonPage } from '../db/pages.js';
import type { JsonObject } from '../model/json.js';
import type { Page } from '../model/list.js';

const SUCCESS_TEXT = ',"success":true}';
const SUCCESS = Buffer.from(SUCCESS_TEXT);

/** interface, "Errors": success is 200 with `Content-Length`; there is never a 204 or an empty body. */
export function sendJson(res: Response, body: Buffer | string, status = 200): void {
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  // Text leaves in one piece with the header, bytes in a second one.
  res.setHeader('Content-Length', typeof body === 'string' ? Buffer.byteLength(body) : body.length);
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
  if (page.release !== undefined) res.once('close', page.release);
  sendJson(res, page.body);
}
