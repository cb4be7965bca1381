/** Rate limiting: each request costs its caller points, and an overloaded process refuses the expensive requests. */
import type { Request, RequestHandler, Response } from 'express';
import { unavailable } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import { callerOf } from './caller.js';
import type { LimitFinder } from './route-limits.js';

export interface RateLimitDeps {
  readonly isOverloaded: () => boolean;
  /** Consumes points of a caller; throws 429. Null if rate limiting is off. */
  readonly consume: ((caller: string, points: number) => Promise<void>) | null;
}

/** Charges the caller for database time of a list. */
export function consumeForMs(res: Response, ms: number): void {
  (res.locals.consumeForMs as ((ms: number) => void) | undefined)?.(ms);
}

/** Charges the caller for bytes of a response without `Content-Length`. */
export function consumeForBytes(res: Response, bytes: number): void {
  (res.locals.consumeForBytes as ((bytes: number) => void) | undefined)?.(bytes);
}

/**
 * Costs one point per request, one per `pointBytes` of its body and its response, and one per `pointMs` of database time for a
 * list. Throws 429, 503.
 */
export function rateLimit({ isOverloaded, consume }: RateLimitDeps, findLimit: LimitFinder): RequestHandler {
  return async (req, res, next) => {
    const isExpensive = isList(findLimit, req) || mayBeBig(req);
    if (isExpensive && isOverloaded()) throw unavailable('the service is overloaded; the request was not processed');
    if (consume === null) {
      next();
      return;
    }
    const { token, userId } = callerOf(res);
    const key = token?.id ?? userId;
    await consumeForRequest(req, res, (points) => consume(key, points));
    const consumeLater = (points: number): void => void (points > 0 && consume(key, points).catch(() => undefined));
    // What a list costs is known only afterwards.
    if (isExpensive) {
      res.locals.consumeForMs = (ms: number) => consumeLater(Math.floor(ms / LIMITS.pointMs));
      res.locals.consumeForBytes = (bytes: number) => consumeLater(pointsOf(bytes));
      res.on('finish', () => consumeLater(pointsOf(Number(res.getHeader('Content-Length') ?? 0))));
    }
    next();
  };
}

/** Whether the body is big, or announces no length, so that it may be. */
export const mayBeBig = (req: Request): boolean => announcesNoLength(req) || bodyBytes(req) > LIMITS.bigBodyBytes;

/** Charges for a request and its body; for a body that announces no length, when the answer is over. Throws 429. */
export async function consumeForRequest(
  req: Request,
  res: Response,
  consume: (points: number) => Promise<void>,
): Promise<void> {
  if (announcesNoLength(req)) {
    const readBytes = countBody(req);
    res.on('close', () => {
      const points = pointsOf(readBytes());
      if (points > 0) consume(points).catch(() => undefined);
    });
  }
  await consume(1 + pointsOf(bodyBytes(req)));
}

/** Counts the bytes of a body that nobody has read from yet; those that come around it on the wire count, too. */
function countBody(req: Request): () => number {
  const { socket } = req;
  const beforeBytes = socket.bytesRead;
  // Some may have come with the headers: the socket has counted them before.
  let bodyBytes = req.readableLength;
  const { push } = req;
  req.push = (chunk: Buffer | null, encoding?: BufferEncoding): boolean => {
    bodyBytes += chunk?.length ?? 0;
    return push.call(req, chunk, encoding);
  };
  return () => Math.max(bodyBytes, socket.bytesRead - beforeBytes);
}

const announcesNoLength = ({ headers }: Request): boolean => headers['transfer-encoding'] !== undefined;

const pointsOf = (bytes: number): number => Math.floor(bytes / LIMITS.pointBytes);

const bodyBytes = ({ headers }: Request): number => Number(headers['content-length'] ?? 0) || 0;

const INTERVAL = ['from', 'to', 'begin', 'end'];

function isList(findLimit: LimitFinder, { method, baseUrl, path, query }: Request): boolean {
  const limit = findLimit(method, baseUrl + path);
  return limit === 'list' || (limit === 'interval' && INTERVAL.some((name) => query[name] !== undefined));
}
