/** Request bodies: JSON of a bounded size; at login also a form. */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import express, { type Request, type RequestHandler } from 'express';
import { ApiError, badRequest, unsupportedMediaType } from '../errors.js';
import { LIMITS } from '../model/limits.js';
import { isWellEncoded } from './requests.js';

/** Nobody reads this but whoever reads the log. */
const GONE = 'the sender went before the end of the body';

const isJson = (req: { headers: { 'content-type'?: string } }): boolean =>
  /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(req.headers['content-type'] ?? '');
const isForm = (req: Request): boolean =>
  /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(req.headers['content-type'] ?? '');

/** Whether there is a body at all: a length of 0, also with a content type, is none. */
function hasBody(req: Request): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;
}

/** A JSON body into `req.body`; none leaves it undefined. Throws 400 (malformed), 413, 415. */
export function readJson(limitBytes: number): RequestHandler[] {
  const parse = parseJson(limitBytes);
  // In many small pieces a big one would take far more memory than it is long.
  const plainBytes = Math.min(limitBytes, LIMITS.bigBodyBytes);
  const read: RequestHandler = (req, res, next) => {
    if (isPlain(req, plainBytes)) readPlain(req, next);
    else parse(req, res, next);
  };
  return [refuseUnless((req) => isJson(req)), read];
}

/** What reads every JSON body, and whatever is not sent plainly. */
export const parseJson = (limitBytes: number): RequestHandler =>
  express.json({ limit: limitBytes, inflate: false, type: () => true, verify: checkText });

/** Bytes that are no UTF-8 would be stored as other text than was sent. */
function checkText(_req: IncomingMessage, _res: unknown, bytes: Buffer, charset: string): void {
  if (charset === 'utf-8' && !isUtf8(bytes)) throw badRequest('the body is not UTF-8');
}

function checkForm(_req: IncomingMessage, _res: unknown, bytes: Buffer, charset: string): void {
  if (charset === 'utf-8' && !isWellEncoded(bytes.toString('latin1'))) throw badRequest('the body is not UTF-8');
}

const PLAIN = /^application\/json(?:; ?charset=utf-8)?$/i;

/** As nearly every body is sent: UTF-8 that is not encoded further, of a length that is told, permitted and not big. */
function isPlain({ headers }: Request, mostBytes: number): boolean {
  const length = Number(headers['content-length']);
  const isShort = length > 0 && length <= mostBytes && headers['content-encoding'] === undefined;
  return isShort && PLAIN.test(headers['content-type'] ?? '');
}

/** The same as the parser does with such a body, at less cost. */
function readPlain(req: Request, next: (error?: unknown) => void): void {
  const chunks: Buffer[] = [];
  const onEnd = (): void => {
    req.off('close', onGone);
    try {
      req.body = parsePlain(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    } catch (error) {
      const isOurs = error instanceof ApiError;
      next(isOurs ? error : Object.assign(error as Error, { status: 400, type: 'entity.parse.failed' }));
      return;
    }
    next();
  };
  const onGone = (): void => next(badRequest(GONE));
  req.on('data', (chunk: Buffer) => void chunks.push(chunk));
  req.once('end', onEnd).once('close', onGone);
}

const BYTE_ORDER_MARK = '\ufeff';

function parsePlain(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw badRequest('the body is not UTF-8');
  const text = bytes.toString();
  const value: unknown = JSON.parse(text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text);
  if (typeof value !== 'object' || value === null) throw new SyntaxError('neither an object nor a list');
  return value;
}

/** A login body: JSON, or the form that browsers and command lines send. */
export function readLogin(): RequestHandler[] {
  return [
    refuseUnless((req) => isJson(req) || isForm(req)),
    express.json({
      limit: LIMITS.loginBodyBytes,
      inflate: false,
      type: (req) => isJson(req as Request),
      verify: checkText,
    }),
    express.urlencoded({
      limit: LIMITS.loginBodyBytes,
      inflate: false,
      extended: false,
      parameterLimit: 20,
      verify: checkForm,
    }),
  ];
}

function refuseUnless(isFit: (req: Request) => boolean): RequestHandler {
  return (req, _res, next) => {
    if (hasBody(req)) {
      if (!isFit(req)) throw unsupportedMediaType('the body must be JSON: Content-Type: application/json');
      // The parser would take what is cut off for no body at all.
      if (req.destroyed || !req.socket.readable) throw badRequest(GONE);
    }
    next();
  };
}
