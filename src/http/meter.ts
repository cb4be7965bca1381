/** What a request costs: callers pay for it in points, and what costs most is left out when the process has too much to do. */
import type { Request, RequestHandler, Response } from 'express';
import { unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';
import { callerOf } from './caller.js';

export interface MeterParts {
  /** Whether the process has too much to do. */
  readonly isOverloaded: () => boolean;
  /** Puts points on a caller's account; throws 429. Null where nobody counts. */
  readonly charge: ((caller: string, points: number) => Promise<void>) | null;
}

/** The caller pays for what the database did for a list. */
export function payForMs(res: Response, ms: number): void {
  (res.locals.payForMs as ((ms: number) => void) | undefined)?.(ms);
}

/**
 * One point a request, one for each `pointBytes` of its body and of its answer, and one for each `pointMs` that the database
 * is busy with a list. Throws 429, 503.
 */
export function meter({ isOverloaded, charge }: MeterParts): RequestHandler {
  return async (req, res, next) => {
    const isBig = isList(req) || sentBytes(req) > LIMITS.bigBodyBytes;
    if (isBig && isOverloaded()) throw unavailable('the service has too much to do; nothing was done');
    if (charge === null) {
      next();
      return;
    }
    const { token, userId } = callerOf(res);
    const payer = token?.id ?? userId;
    await charge(payer, 1 + pointsOf(sentBytes(req)));
    // What a list costs shows when it is there: it is paid for afterwards.
    if (isBig) {
      const pay = (points: number): void => void (points > 0 && charge(payer, points).catch(() => undefined));
      res.locals.payForMs = (ms: number) => pay(Math.floor(ms / LIMITS.pointMs));
      res.on('finish', () => pay(pointsOf(Number(res.getHeader('Content-Length') ?? 0))));
    }
    next();
  };
}

const LIGHT: ReadonlySet<string | undefined> = new Set(['auth', 'events']);

const pointsOf = (bytes: number): number => Math.floor(bytes / LIMITS.pointBytes);

const sentBytes = ({ headers }: Request): number => Number(headers['content-length'] ?? 0) || 0;

/**
 * A store, or the packets of an object: paths of an odd number of parts. Everyone may always ask who they are; and listen,
 * since a browser whose stream is refused does not come back by itself.
 */
function isList({ method, path }: Request): boolean {
  if (method !== 'GET') return false;
  const parts = path.split('/').filter((part) => part !== '');
  return parts.length % 2 === 1 && !LIGHT.has(parts[0]?.toLowerCase());
}
