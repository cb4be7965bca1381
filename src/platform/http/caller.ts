/** The caller of a request, and the path that its permissions are compared with. */
import type { Response } from 'express';
import { type Caller, type Scope, scopeOf, toSegments } from '../../core/access.js';
import { badRequest } from '../../core/errors.js';

/** The caller that `authorize` identified. */
export function callerOf(res: Response): Caller {
  return res.locals.caller as Caller;
}

export function scopeIn(res: Response): Scope {
  return scopeOf(callerOf(res));
}

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
