/** Routes: what a user may do, and why. It applies the rules of every request to a user other than the caller. */
import { type Request, type RequestHandler, Router } from 'express';
import { findPermitting, type OwnObject, type Scope, scopeOf } from '../core/access.js';
import type { Entity } from '../core/entity.js';
import { ApiError, badRequest, notFound } from '../core/errors.js';
import { builtInStore, type Store } from '../core/stores.js';
import { getEntity } from '../entities/read.js';
import { isForAll, requiredMethod, scopeIn, toRouteSegments } from '../platform/http/caller.js';
import { allowMethods } from '../platform/http/errors.js';
import { parseText } from '../platform/http/query-params.js';
import { sendJson } from '../platform/http/responses.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findRights } from './accounts.js';

export interface PermissionDeps {
  readonly database: Database;
  readonly findStore: (name: string, scope: Scope) => Promise<Store | null>;
}

interface Question {
  readonly method: string;
  readonly path: string;
  readonly segments: readonly string[];
}

interface Subject {
  readonly user: Entity;
  readonly credentials: readonly string[];
  readonly object: OwnObject | null;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'];

export function createPermissionRouter(deps: PermissionDeps): Router {
  const router = Router();
  router.route('/users/:id/permissions').get(explain(deps)).all(allowMethods('GET'));
  return router;
}

const explain =
  (deps: PermissionDeps): RequestHandler =>
  async (req, res) => {
    const question = parseQuestion(req);
    const scope = scopeIn(res);
    const user = await getEntity(deps.database, builtInStore('users'), scope, String(req.params.id));
    const role = await getVisible(deps.database, builtInStore('roles'), scope, user.role);
    const rights = await findRights(deps.database, user);
    const { _id, login, group, active } = user;
    const about = { user: _id, login, group, active: active !== false };
    const seen = role === null ? null : { _id: role._id, name: role.name };
    // The lines of a role that the caller does not see stay unknown.
    const credentials = role === null ? null : rights.credentials;
    const answer = question === null ? {} : await decide(deps, scope, { user, ...rights }, question);
    const shown = role === null && 'credential' in answer ? { ...answer, credential: null } : answer;
    sendJson(res, JSON.stringify({ success: true, ...about, role: seen, credentials, ...shown }));
  };

/** Null if nothing particular is asked. */
function parseQuestion({ query }: Request): Question | null {
  const method = parseText(query, 'method');
  const path = parseText(query, 'path');
  if (method === null && path === null) return null;
  if (method === null || !METHODS.includes(method)) throw badRequest(`method: expected one of ${METHODS.join(', ')}`);
  if (path === null || path === '') throw badRequest('path: expected a path, such as /objects/truck-7');
  const [bare = ''] = path.split('?');
  return { method, path: bare, segments: toRouteSegments(bare) };
}

async function decide(deps: PermissionDeps, scope: Scope, subject: Subject, { method, path, segments }: Question) {
  const wanted = requiredMethod(method, segments);
  const credential = isForAll(segments) ? null : findPermitting(subject.credentials, wanted, segments);
  const entity = await explainEntity(deps, scope, subject, segments);
  const isPermitted = isForAll(segments) || credential !== null;
  const isActive = subject.user.active !== false;
  const status = !isActive ? 401 : !isPermitted ? 403 : entity !== null && entity.reasons.length === 0 ? 404 : 200;
  return { method, path, status, credential, entity };
}

/** The entity that a path names, and why the user sees it: no reasons, no sight. Throws 404 if the caller does not see it. */
async function explainEntity(deps: PermissionDeps, scope: Scope, subject: Subject, segments: readonly string[]) {
  const [name = '', key] = segments;
  if (key === undefined || isForAll(segments) || name === 'account') return null;
  const { user, object } = subject;
  const theirScope = scopeOf({ userId: user._id, groupId: String(user.group), object });
  const theirStore = await deps.findStore(name, theirScope);
  const store = await deps.findStore(name, scope);
  if (store === null) throw notFound();
  const theirs = theirStore === null ? null : await getVisible(deps.database, theirStore, theirScope, key);
  const entity = await getEntity(deps.database, store, scope, theirs?._id ?? key);
  return { store: store.name, _id: entity._id, reasons: theirs === null ? [] : reasonsOf(theirs, subject) };
}

/** Every reason by itself suffices. */
function reasonsOf(entity: Entity, { user }: Subject): string[] {
  const reasons = [
    ...(entity.branch.includes(String(user.group)) ? ['group'] : []),
    ...(entity.owner === user._id ? ['owner'] : []),
    ...(entity.access.includes(user._id) ? ['shared'] : []),
  ];
  return reasons.length > 0 ? reasons : ['built-in'];
}

async function getVisible(database: Database, store: Store, scope: Scope, key: unknown): Promise<Entity | null> {
  if (typeof key !== 'string') return null;
  try {
    return await getEntity(database, store, scope, key);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}
