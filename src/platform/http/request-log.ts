/** Gives each request an id and one log line when it ends; checks its target and `Host`. */
import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';
import type { Caller } from '../../core/access.js';
import { badRequest } from '../../core/errors.js';
import { discardSlowly } from './unread-bodies.js';

const REQUEST_ID = /^[A-Za-z0-9_.:-]{8,128}$/;

/** Takes a valid id from `X-Request-Id`, as load balancers send it, or creates one, and returns it in `X-Request-Id`. */
export function assignRequestId(): RequestHandler {
  return (req, res, next) => {
    const given = req.get('x-request-id');
    res.locals.requestId = given !== undefined && REQUEST_ID.test(given) ? given : randomUUID();
    res.setHeader('X-Request-Id', res.locals.requestId);
    res.setHeader('Cache-Control', 'no-store');
    next();
  };
}

/**
 * Whether a URL or a form decodes to UTF-8; the decoders of Node.js would replace invalid bytes with U+FFFD. The text holds one
 * character per byte (Latin-1).
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

/** HTTP/1.1 requires `Host` (RFC 9112, 3.2). */
export const requireHost: RequestHandler = (req, _res, next) => {
  if (req.httpVersion === '1.1' && req.headers.host === undefined) throw badRequest('Host: required');
  next();
};

/**
 * Runs the callback when the client has disconnected, immediately if that has happened already. The response does not report
 * that, nor a disconnect while it waits for an earlier response of its connection. Returns a function that removes the listener.
 */
export function onClientDisconnect({ socket }: Request, callback: () => void): () => void {
  // Each pipelined request of the connection adds a listener: many listeners are no leak.
  socket.setMaxListeners(0);
  socket.once('close', callback);
  if (socket.destroyed) callback();
  return () => void socket.off('close', callback);
}

/** A finished request. `status` is null if the client disconnected before the end of the response. */
export interface EndedRequest {
  readonly method: string;
  readonly route: string;
  readonly status: number | null;
  readonly ms: number;
}

/** Logs method, route, status, time and caller: never a body, a cookie, a token or a query string. */
export function logRequests(log: Logger, ended: (request: EndedRequest) => void): RequestHandler {
  return (req, res, next) => {
    const startMs = performance.now();
    res.once('close', () => {
      if (!req.complete) discardSlowly(req);
      const caller = res.locals.caller as Caller | undefined;
      const route = routeOf(res);
      const ms = performance.now() - startMs;
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

// The pattern of the route, not the path: metrics need a bounded number of label values.
function routeOf({ req }: Response): string {
  const path: unknown = req.route?.path;
  return typeof path === 'string' ? path : 'none';
}
