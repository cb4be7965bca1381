/** The doorman: who calls (401), whether the method is theirs (403), whether a foreign web page is behind it (403). */
import type { Request, RequestHandler, Response } from 'express';
import type { Identify } from '../auth/identify.js';
import { isTrustedOrigin } from '../auth/origin.js';
import { badRequest, forbidden, unauthorized } from '../errors.js';
import { type Caller, mayCall, type Scope, scopeOf, toSegments } from '../model/access.js';

/** The caller that `admit` let in. */
export function callerOf(res: Response): Caller {
  return res.locals.caller as Caller;
}

/** What the caller sees. */
export function scopeIn(res: Response): Scope {
  return scopeOf(callerOf(res));
}

/** A cookie alone does not prove that its owner wants the change: a foreign page could have sent it. */
export function refuseForeignPages(corsOrigins: readonly string[]): RequestHandler {
  return (req, _res, next) => {
    if (!isTrustedOrigin(req.headers, req.protocol, corsOrigins))
      throw forbidden('a web page of a foreign origin sent this request');
    next();
  };
}

/** 401 before 403, and both before anything is told of what is there. */
export function admit(identify: Identify, corsOrigins: readonly string[]): RequestHandler {
  const refuseForeign = refuseForeignPages(corsOrigins);
  return async (req, res, next) => {
    const caller = await checkCaller(identify, req, res);
    if (caller.session === null || isSafe(req.method)) next();
    else refuseForeign(req, res, next);
  };
}

/** Who calls, as rights are now; they may do what they ask for. Throws 401, 403. */
export async function checkCaller(identify: Identify, req: Request, res: Response): Promise<Caller> {
  const caller = await identify(req.headers);
  if (caller === null) throw unauthorized();
  res.locals.caller = caller;
  const segments = segmentsOf(req);
  if (!isForAll(segments) && !mayCall(caller, methodAsked(req.method, segments), segments)) throw forbidden();
  return caller;
}

// Everyone may ask who they are, and leave; and listen, where the feed tells each what their rights are.
const isForAll = ([first]: readonly string[]): boolean => first === 'auth' || first === 'events';

// The log of security events tells of everyone: it is for those who may do everything there, not for mere readers.
const methodAsked = (method: string, [store]: readonly string[]): string => (store === 'audit' ? '*' : method);

const isSafe = (method: string): boolean => method === 'GET' || method === 'HEAD' || method === 'OPTIONS';

// The same decision for every spelling that the router takes for the same route: names of routes know no case.
function segmentsOf(req: Request): string[] {
  try {
    const path = `${req.baseUrl}${req.path}`.replace(/^\/api\/v1(?=\/|$)/i, '');
    return toSegments(path).map((segment, at) => (at % 2 === 0 ? segment.toLowerCase() : segment));
  } catch {
    throw badRequest('the path is not well encoded');
  }
}
