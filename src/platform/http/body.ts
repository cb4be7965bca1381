/** Parses request bodies: JSON of a limited size, and forms at login. */
import type { IncomingMessage } from 'node:http';
import express, { type NextFunction, type Request, type RequestHandler, type Response } from 'express';
import { badRequest, unsupportedMediaType } from '../../core/errors.js';
import { parseExactJson } from '../../core/exact-json.js';
import { LIMITS } from '../../core/limits.js';
import type { Budget } from '../budget.js';
import type { FairQueue } from '../fair-queue.js';
import { callerOf } from './caller.js';
import {
  type CheckedBytes,
  CLIENT_DISCONNECTED,
  checkUtf8,
  parseChecked,
  readChecked,
  reserveBody,
  withoutByteOrderMark,
} from './large-body.js';
import { isWellEncoded } from './request-log.js';

/** Not SenML (RFC 8428): its records continue the ones before them, and would be stored as something else. A source reads it. */
const isJson = (req: { headers: { 'content-type'?: string } }): boolean =>
  /^application\/(?!sens?ml\+)(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(req.headers['content-type'] ?? '');
const isForm = (req: Request): boolean =>
  /^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(req.headers['content-type'] ?? '');

/** A length of 0 is no body, even with a content type. */
function hasBody(req: Request): boolean {
  return req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;
}

export interface BodyDeps {
  /** Limits the bytes of bodies in progress; small bodies are not counted. */
  readonly bodyBudget: Budget;
  /** Schedules the handling of large bodies. */
  readonly bodyQueue: FairQueue;
  /** The same for very large ones. */
  readonly hugeBodyQueue: FairQueue;
}

/** Parses a JSON body into `req.body` and calls the handler. An empty body leaves it undefined. Throws 400 (malformed), 413, 415, 429, 503. */
export function jsonBody(limitBytes: number, deps: BodyDeps, handler: RequestHandler): RequestHandler[] {
  const parse = parseJson(Math.min(limitBytes, LIMITS.bigBodyBytes));
  const plainBytes = Math.min(limitBytes, LIMITS.checkedBodyBytes);
  const read: RequestHandler = (req, res, next) => {
    // Express' parser would read a body of length 0 as `{}`.
    if (!hasBody(req)) next();
    else if (isPlain(req, plainBytes)) readPlain(req, next);
    else if (isUtf8Json(req)) handleChecked({ ...deps, limitBytes, handler }, req, res, next);
    else parse(req, res, next);
  };
  return [refuseUnless((req) => isJson(req)), read, handler];
}

/** Checks the body while it arrives. Parsing and handling a large one waits in the queue of its caller. */
async function handleChecked(
  {
    bodyBudget,
    bodyQueue,
    hugeBodyQueue,
    limitBytes,
    handler,
  }: BodyDeps & { limitBytes: number; handler: RequestHandler },
  req: Request,
  res: Response,
  next: NextFunction,
): Promise<void> {
  const caller = callerOf(res);
  const reservation = reserveBody(bodyBudget, caller.userId);
  try {
    const checked = await readChecked(req, limitBytes, reservation);
    const handle = async (): Promise<void> => {
      req.body = checked.bytes.length === 0 ? undefined : await parseBody(checked);
      await handler(req, res, next);
    };
    const { length } = checked.bytes;
    const queue = length > LIMITS.hugeBodyBytes ? hugeBodyQueue : bodyQueue;
    await (length > LIMITS.bigBodyBytes ? queue.run(caller, handle) : handle());
  } catch (error) {
    next(error);
  } finally {
    reservation.release();
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

/** For bodies in other encodings than UTF-8. The other parsers here give the same results. */
export function parseJson(limitBytes: number): RequestHandler {
  const options = { limit: limitBytes, inflate: false, defaultCharset: 'utf-8', type: () => true, verify: checkText };
  const decode = express.text(options);
  return (req, res, next) => {
    // RFC 8259 knows only these.
    if (!charsetOf(req).startsWith('utf-'))
      throw unsupportedMediaType('the body must be plain UTF-8 JSON, not compressed');
    decode(req, res, (error?: unknown) => {
      try {
        if (error === undefined) req.body = req.body ? parseText(req.body) : undefined;
        next(error);
      } catch (fault) {
        next(fault);
      }
    });
  };
}

const charsetOf = ({ headers }: Request): string =>
  (/;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(headers['content-type'] ?? '')?.[1] ?? 'utf-8').toLowerCase();

/** Node.js would replace invalid UTF-8 with U+FFFD: the stored text would differ from the sent text. */
function checkText(_req: IncomingMessage, _res: unknown, bytes: Buffer, charset: string): void {
  if (charset === 'utf-8') checkUtf8(bytes);
}

function checkForm(_req: IncomingMessage, _res: unknown, bytes: Buffer, charset: string): void {
  if (charset === 'utf-8' && !isWellEncoded(bytes.toString('latin1'))) throw badRequest('the body is not UTF-8');
}

/** Whether the headers declare an uncompressed body in UTF-8. */
function isUtf8Json(req: Request): boolean {
  return charsetOf(req) === 'utf-8' && (req.headers['content-encoding'] ?? 'identity').toLowerCase() === 'identity';
}

const PLAIN = /^application\/json(?:; ?charset=utf-8)?$/i;

/** Whether the body has the usual form: uncompressed UTF-8 with a `Content-Length` of at most `maxBytes`. */
function isPlain({ headers }: Request, maxBytes: number): boolean {
  const length = Number(headers['content-length']);
  const isShort = length > 0 && length <= maxBytes && headers['content-encoding'] === undefined;
  return isShort && PLAIN.test(headers['content-type'] ?? '');
}

/** Gives the same result as `parseJson` at lower cost. */
function readPlain(req: Request, next: (error?: unknown) => void): void {
  const chunks: Buffer[] = [];
  const onEnd = (): void => {
    req.off('close', onClose);
    try {
      req.body = parsePlain(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    } catch (error) {
      next(error);
      return;
    }
    next();
  };
  const onClose = (): void => next(badRequest(CLIENT_DISCONNECTED));
  req.on('data', (chunk: Buffer) => void chunks.push(chunk));
  req.once('end', onEnd).once('close', onClose);
}

function parsePlain(bytes: Buffer): unknown {
  checkUtf8(bytes);
  return parseText(withoutByteOrderMark(bytes));
}

function parseText(text: string): unknown {
  try {
    return toBody(parseExactJson(text));
  } catch (error) {
    return failParsing(error as Error);
  }
}

const NO_OBJECT = 'the body must be a JSON object';
const isBody = (value: unknown): boolean => typeof value === 'object' && value !== null;

function toBody(value: unknown): unknown {
  if (!isBody(value)) throw badRequest(NO_OBJECT);
  return value;
}

/** Parses a login body: JSON, or a form as browsers and command-line tools send it. */
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

/** A common misspelling of `utf-8`, which Express' parsers refuse. */
const UTF8 = /(;\s*charset\s*=\s*"?)utf8\b/i;

function refuseUnless(isAccepted: (req: Request) => boolean): RequestHandler {
  return (req, _res, next) => {
    if (hasBody(req)) {
      const type = req.headers['content-type'];
      if (type !== undefined && UTF8.test(type)) req.headers['content-type'] = type.replace(UTF8, '$1utf-8');
      if (!isAccepted(req)) throw unsupportedMediaType('the body must be JSON: Content-Type: application/json');
      // Express' parser would treat a truncated body as absent.
      if (req.destroyed || !req.socket.readable) throw badRequest(CLIENT_DISCONNECTED);
    }
    next();
  };
}
