/** Authenticates the caller (401), checks the permission (403) and refuses requests of foreign web pages (403). */
import type { Request, RequestHandler, Response } from 'express';
import { type Caller, mayCall } from '../core/access.js';
import { forbidden, unauthorized } from '../core/errors.js';
import { isForAll, requiredMethod } from '../core/route-access.js';
import { toRouteSegments } from '../platform/http/caller.js';
import type { Identify } from './identify.js';
import { isTrustedOrigin } from './origin.js';

/** Prevents cross-site request forgery: browsers also send the cookie with requests of foreign pages. Throws a 403. */
export function refuseForeignPage(req: Request, corsOrigins: readonly string[]): void {
  if (!isTrustedOrigin(req.headers, req.protocol, corsOrigins)) {
    throw forbidden('a web page of a foreign origin sent this request');
  }
}

/** Checks 401 before 403, and both before any lookup: callers cannot probe for existing entities. */
export function authenticate(identify: Identify, corsOrigins: readonly string[]): RequestHandler {
  return async (req, res, next) => {
    const caller = await authorize(identify, req, res);
    if (caller.session !== null && !isSafe(req.method)) refuseForeignPage(req, corsOrigins);
    next();
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

const isSafe = (method: string): boolean => method === 'GET' || method === 'HEAD' || method === 'OPTIONS';

const segmentsOf = (req: Request): string[] => toRouteSegments(`${req.baseUrl}${req.path}`);
