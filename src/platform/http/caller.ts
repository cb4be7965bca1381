/** The caller of a request, and the path and method that its permissions are compared with. */
import type { Response } from 'express';
import { type Caller, type Scope, scopeOf, toSegments } from '../../core/access.js';
import { badRequest } from '../../core/errors.js';
import { isReport } from '../../core/report-kinds.js';

/** The caller that `authorize` identified. */
export function callerOf(res: Response): Caller {
  return res.locals.caller as Caller;
}

export function scopeIn(res: Response): Scope {
  return scopeOf(callerOf(res));
}

// Every caller may read the own identity and log out. Live events are filtered by the feed, and `/series` and reports check the
// permission for each object.
export const isForAll = ([first, second, ...others]: readonly string[]): boolean =>
  FOR_ALL.has(first) ||
  (first === 'series' && second === undefined) ||
  (first === 'reports' && isReport(second) && others.length === 0);
const FOR_ALL: ReadonlySet<string | undefined> = new Set(['auth', 'events']);

// Reading audit events requires `* /audit`, and settings `* /settings`; `GET /*` is not enough.
export const requiredMethod = (method: string, [store]: readonly string[]): string =>
  store === 'audit' || store === 'settings' ? '*' : method;

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
