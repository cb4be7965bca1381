/** Records requests that are security events, once their response was sent. */
import type { Request, RequestHandler, Response } from 'express';
import { type Caller, toSegments } from '../core/access.js';
import type { RecordedChange } from '../entities/entity-writes.js';
import type { Audit } from './audit.js';
import { ENTITY_CHANGED } from './audit-budget.js';

const EVERYDAY = /^\/api\/v1\/objects(?:\/[\w-]+(?:\/packets)?)?$/;
const RIGHTS: ReadonlySet<string> = new Set(['users', 'roles', 'groups']);

/** The action to record for a request; null if the request is no security event, or records its own. `segments`: without api/v1. */
function securityAction(method: string, segments: readonly string[], status: number): string | null {
  const [store = '', id, part] = segments;
  if (store === 'auth' && method === 'POST') {
    return ({ 200: 'login', 401: 'login failed', 403: 'forbidden', 429: 'login refused' } as const)[status] ?? null;
  }
  if (status === 403) return 'forbidden';
  if (status !== 200 || method === 'GET' || method === 'HEAD') return null;
  if (store === 'auth') return 'logout';
  if (store === 'account') return accountAction(method, id?.toLowerCase());
  if (part === 'access') return 'share changed';
  if (part === 'move' || (store === 'groups' && part === 'objects')) return null;
  if (store === 'tokens') return ({ POST: 'token issued', DELETE: 'token revoked' } as const)[method] ?? null;
  return RIGHTS.has(store) ? 'rights changed' : null;
}

function accountAction(method: string, part: string | undefined): string {
  if (part === 'tokens') return method === 'POST' ? 'token issued' : 'token revoked';
  return part === 'sessions' ? 'logout' : 'rights changed';
}

export function auditRequests(audit: Audit): RequestHandler {
  return (req, res, next) => {
    res.once('finish', () => {
      // Permitted reads are no security events, nor are successful requests to objects and their packets.
      if (res.statusCode === 200 && (req.method === 'GET' || EVERYDAY.test(req.originalUrl))) return;
      const names = namesIn(req);
      const givenAction = res.locals.action as string | undefined;
      const action = givenAction ?? securityAction(req.method, names, res.statusCode);
      // The changes of a request are events of their own.
      if (action === 'rights changed' && res.locals.isRecorded === true) return;
      if (action !== null) audit.record({ action, ...requestOf(req, res) });
    });
    next();
  };
}

/** Records each changed entity of a request, with the former and the new values. */
export const createChangeRecorder =
  (audit: Pick<Audit, 'record'>) =>
  (req: Request, res: Response, { store, _id, fields, values }: RecordedChange): void => {
    res.locals.isRecorded = true;
    const action = RIGHTS.has(store) ? 'rights changed' : ENTITY_CHANGED;
    audit.record({ action, ...requestOf(req, res), ...values, entityId: _id, fields });
  };

/** What follows the id of a source is its key. */
const withoutKey = (path: string[]): string[] => (path[0]?.toLowerCase() === 'in' ? path.slice(0, 2) : path);

// Decoded as in the router, so that an encoded path is recorded as well.
function segmentsOf(path: string): string[] {
  try {
    return toSegments(path);
  } catch {
    return path.split('/').filter(Boolean);
  }
}

/** The segments of the path without api/v1. */
function namesIn({ originalUrl }: Request): string[] {
  const segments = segmentsOf(originalUrl.split('?', 1)[0] ?? '');
  const path = withoutKey(segments.slice(segments[0]?.toLowerCase() === 'api' ? 2 : 0));
  return path.map((segment, index) => (index % 2 === 0 ? segment.toLowerCase() : segment));
}

/** Who has asked for what, as far as it is known by now. */
export function requestOf(req: Request, res: Response) {
  const caller = res.locals.caller as Caller | undefined;
  return {
    userId: caller?.userId ?? (res.locals.userId as string | undefined) ?? null,
    login: caller?.login ?? (res.locals.login as string | undefined) ?? null,
    address: req.ip ?? 'unknown',
    requestId: res.locals.requestId as string,
    method: req.method,
    path: `/${namesIn(req).join('/')}`,
    entityId: (res.locals.entityId as string | undefined) ?? null,
    fields: (res.locals.fields as string[] | undefined) ?? null,
  };
}
