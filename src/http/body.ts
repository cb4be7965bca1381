/** Request bodies: JSON of a bounded size; at login also a form. */
import type { IncomingMessage } from 'node:http';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { badRequest, unsupportedMediaType } from '../errors.js';
import type { Budget } from '../fairness/budget.js';
import type { FairQueue } from '../fairness/fair-queue.js';
import { LIMITS } from '../model/limits.js';
import { type CheckedBytes, checkUtf8, GONE, holdBody, parseChecked, readChecked, withoutMark } from './big-body.js';
import { callerOf } from './caller.js';
import { isWellEncoded } from './requests.js';

const isJson = (req: { headers: { 'content-type'?: string } }): boolean =>
  /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(req.headers['content-type'] ?? '');
const isForm = (req: Request): boolean =>
  /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(req.headers['content-type'] ?? '');

/** Whether there is a body at all: a length of 0, also with a content type, is none. */
function hasBody(req: Request): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;
}

export interface BodyParts {
  /** Bodies of requests that are not answered yet; small ones are not counted. */
  readonly bodyBudget: Budget;
  /** Where big bodies are dealt with in turn. */
  readonly bodyQueue: FairQueue;
}

/** A JSON body into `req.body`, then the handler; no body leaves it undefined. Throws 400 (malformed), 413, 415, 429, 503. */
export function jsonBody(limitBytes: number, parts: BodyParts, handler: RequestHandler): RequestHandler[] {
  const parse = parseJson(Math.min(limitBytes, LIMITS.bigBodyBytes));
  const plainBytes = Math.min(limitBytes, LIMITS.checkedBodyBytes);
  const read: RequestHandler = (req, res, next) => {
    if (isPlain(req, plainBytes)) readPlain(req, next);
    else if (hasBody(req) && isUtf8Json(req)) handleChecked({ ...parts, limitBytes, handler }, req, res, next);
    else parse(req, res, next);
  };
  return [refuseUnless((req) => isJson(req)), read, handler];
}

/** Checks the body while it arrives; a big one is dealt with when it is its caller's turn, until the handler is done. */
async function handleChecked(
  { bodyBudget, bodyQueue, limitBytes, handler }: BodyParts & { limitBytes: number; handler: RequestHandler },
  req: Request,
  res: Response,
  next: NextFunction,
): Promise<void> {
  const caller = callerOf(res).userId;
  const held = holdBody(bodyBudget, caller);
  try {
    const checked = await readChecked(req, limitBytes, held);
    const handle = async (): Promise<void> => {
      req.body = checked.bytes.length === 0 ? {} : await parseBody(checked);
      await handler(req, res, next);
    };
    await (checked.bytes.length > LIMITS.bigBodyBytes ? bodyQueue.run(caller, handle) : handle());
  } catch (error) {
    next(error);
  } finally {
    held.giveBack();
  }
}

async function parseBody(checked: CheckedBytes): Promise<unknown> {
  try {
    return toBody(await parseChecked(checked));
  } catch (error) {
    return failParsing(error as Error);
  }
}

function failParsing(error: Error): never {
  throw error instanceof SyntaxError ? Object.assign(error, { status: 400, type: 'entity.parse.failed' }) : error;
}

/** What reads a body that is not sent as UTF-8; and what the others are read like. */
export const parseJson = (limitBytes: number): RequestHandler =>
  express.json({ limit: limitBytes, inflate: false, type: () => true, verify: checkText });

/** Bytes that are no UTF-8 would be stored as other text than was sent. */
function checkText(_req: IncomingMessage, _res: unknown, bytes: Buffer, charset: string): void {
  if (charset === 'utf-8') checkUtf8(bytes);
}

function checkForm(_req: IncomingMessage, _res: unknown, bytes: Buffer, charset: string): void {
  if (charset === 'utf-8' && !isWellEncoded(bytes.toString('latin1'))) throw badRequest('the body is not UTF-8');
}

/** Whether the body is text as it is, or says so at least. */
function isUtf8Json({ headers }: Request): boolean {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(headers['content-type'] ?? '')?.[1] ?? 'utf-8';
  return charset.toLowerCase() === 'utf-8' && (headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity';
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
      next(error);
      return;
    }
    next();
  };
  const onGone = (): void => next(badRequest(GONE));
  req.on('data', (chunk: Buffer) => void chunks.push(chunk));
  req.once('end', onEnd).once('close', onGone);
}

function parsePlain(bytes: Buffer): unknown {
  checkUtf8(bytes);
  try {
    return toBody(JSON.parse(withoutMark(bytes)));
  } catch (error) {
    return failParsing(error as Error);
  }
}

function toBody(value: unknown): unknown {
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
