/** Authenticates the caller (401), checks the permission (403) and refuses requests of foreign web pages (403). */
import type { Request, RequestHandler, Response } from 'express';
import type { Identify } from '../../auth/identify.js';
import { isTrustedOrigin } from '../../auth/origin.js';
import { badRequest, forbidden, unauthorized } from '../../errors.js';
import { type Caller, mayCall, type Scope, scopeOf, toSegments } from '../../model/access.js';

/** The caller that `authorize` identified. */
export function callerOf(res: Response): Caller {
  return res.locals.caller as Caller;
}

export function scopeIn(res: Response): Scope {
  return scopeOf(callerOf(res));
}

/** Prevents cross-site request forgery: browsers also send the cookie with requests of foreign pages. */
export function refuseForeignPages(corsOrigins: readonly string[]): RequestHandler {
  return (req, _res, next) => {
    if (!isTrustedOrigin(req.headers, req.protocol, corsOrigins))
      throw forbidden('a web page of a foreign origin sent this request');
    next();
  };
}

/** Checks 401 before 403, and both before any lookup: callers cannot probe for existing entities. */
export function authenticate(identify: Identify, corsOrigins: readonly string[]): RequestHandler {
  const refuseForeign = refuseForeignPages(corsOrigins);
  return async (req, res, next) => {
    const caller = await authorize(identify, req, res);
    if (caller.session === null || isSafe(req.method)) next();
    else refuseForeign(req, res, next);
  };
}

/** Identifies the caller with current permissions and checks the request against them. Throws 401, 403. */
export async function authorize(identify: Identify, req: Request, res: Response): Promise<Caller> {
  const caller = await identify(req.headers);
  if (caller === null) throw unauthorized();
  res.locals.caller = caller;
  const segments = segmentsOf(req);
  if (!isForAll(segments) && !mayCall(caller, requiredMethod(req.method, segments), segments)) throw forbidden();
  return caller;
}

// Every caller may read the own identity and log out. Live events are filtered by the feed, and `/series` checks the
// permission for each object.
export const isForAll = (segments: readonly string[]): boolean =>
  FOR_ALL.has(segments[0]) || (segments.length === 1 && segments[0] === 'series');
const FOR_ALL: ReadonlySet<string | undefined> = new Set(['auth', 'events']);

// Reading audit events requires `* /audit`; `GET /*` is not enough.
export const requiredMethod = (method: string, [store]: readonly string[]): string =>
  store === 'audit' ? '*' : method;

const isSafe = (method: string): boolean => method === 'GET' || method === 'HEAD' || method === 'OPTIONS';

const segmentsOf = (req: Request): string[] => toRouteSegments(`${req.baseUrl}${req.path}`);

/** The segments of a path, normalized like in the router, which ignores the case of route names. */
export function toRouteSegments(path: string): string[] {
  try {
    const segments = toSegments(path.replace(/^\/?api\/v1(?=\/|$)/i, ''));
    // Every spelling needs the same permission.
    return segments.map((segment, index) => (index % 2 === 0 ? segment.toLowerCase() : segment));
  } catch {
    throw badRequest('the path is not well encoded');
  }
}
