/** What every request has: an id, headers that keep browsers safe, and one line in the log when it ends. */
import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import { badRequest } from '../errors.js';
import type { Caller } from '../model/access.js';
import { discardSlowly } from './leftover.js';

const REQUEST_ID = /^[A-Za-z0-9_.:-]{8,128}$/;

/** The id a client or balancer gave the request, if it is sound, or a new one; told in `X-Request-Id`. */
export function nameRequest(): RequestHandler {
  return (req, res, next) => {
    const given = req.get('x-request-id');
    res.locals.requestId = given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
    res.setHeader('X-Request-Id', res.locals.requestId);
    res.setHeader('Cache-Control', 'no-store');
    next();
  };
}

/**
 * Whether what an address or a form holds is UTF-8 once it is decoded: the rest of Node.js takes whatever is not for U+FFFD.
 * Text as Node.js has it: a character for each byte.
 */
export function isWellEncoded(text: string): boolean {
  if (!/[%\u0080-\u00ff]/.test(text)) return true;
  const toByte = (_: string, digits: string): string => String.fromCharCode(Number.parseInt(digits, 16));
  return isUtf8(Buffer.from(text.replace(/%([0-9a-f]{2})/gi, toByte), 'latin1'));
}

export const requireUtf8: RequestHandler = (req, _res, next) => {
  if (!isWellEncoded(req.originalUrl)) throw badRequest('the address is not well encoded: expected UTF-8');
  next();
};

/** HTTP/1.1 asks every request for the host it means (RFC 9112, 3.2). */
export const requireHost: RequestHandler = (req, _res, next) => {
  if (req.httpVersion === '1.1' && req.headers.host === undefined) throw badRequest('Host: required');
  next();
};

/**
 * Acts when the client has gone: at once, where it went before it was asked; the answer tells neither that, nor when it
 * still waits behind another answer of its connection. Gives what ends the watch.
 */
export function whenGone({ socket }: Request, act: () => void): () => void {
  // Every request that waits in line on the connection has one: many of them are no leak.
  socket.setMaxListeners(0);
  socket.once('close', act);
  if (socket.destroyed) act();
  return () => void socket.off('close', act);
}

/** A request that is over; its status is null when the client had gone before the end of the answer. */
export interface EndedRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number | null;
  readonly ms: number;
}

/** Method, route, status, time, caller: never a body, a cookie, a token or a query string. */
export function logRequests(log: Logger, ended: (request: EndedRequest) => void): RequestHandler {
  return (req, res, next) => {
    const startMs = performance.now();
    res.once('close', () => {
      if (!req.complete) discardSlowly(req);
      const caller = res.locals.caller as Caller | undefined;
      const [route, ms] = [routeOf(res), performance.now() - startMs];
      ended({ method: req.method, route, status: res.writableFinished ? res.statusCode : null, ms });
      log.info(
        {
          requestId: res.locals.requestId,
          method: req.method,
          route,
          status: res.statusCode,
          ms: Math.round(ms * 10) / 10,
          ...(caller && { user: caller.userId }),
          ...(!res.writableFinished && { aborted: true }),
        },
        'request',
      );
    });
    next();
  };
}

// The pattern of the route, so that a log or a metric has as many values as there are routes.
function routeOf({ req }: Response): string {
  const path: unknown = req.route?.path;
  if (typeof path !== 'string') return 'none';
  // A router knows its paths without what it is mounted at; some are not mounted.
  return /^\/api\/v1(?=\/|$)/i.test(req.originalUrl) && !path.startsWith('/api/v1') ? `/api/v1${path}` : path;
}
