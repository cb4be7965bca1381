/** Routes: what a user may do, and why. It applies the rules of every request to a user other than the caller. */
import type { Request } from 'express';
import { z } from 'zod';
import { findPermitting, type OwnObject, type Scope, scopeOf } from '../core/access.js';
import type { Entity } from '../core/entity.js';
import { ApiError, badRequest, notFound } from '../core/errors.js';
import { isForAll, requiredMethod } from '../core/route-access.js';
import { builtInStore, type Store } from '../core/stores.js';
import { getEntity, getReadable } from '../entities/read.js';
import { scopeIn, toRouteSegments } from '../platform/http/caller.js';
import { ENTITY_KEY } from '../platform/http/parameters.js';
import { parseText } from '../platform/http/query-params.js';
import { sendJson } from '../platform/http/responses.js';
import { defineRoute } from '../platform/http/route.js';
import { every, SUCCESS } from '../platform/http/schema.js';
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

const ENTITY = z.strictObject({
  store: z.string(),
  _id: z.string(),
  reasons: z
    .array(z.enum(['group', 'owner', 'shared', 'built-in', 'object']))
    .describe(
      'Why the user sees the entity: its branch contains the group of the user, the user is its owner, it is shared with ' +
        'the user, everyone sees it, or the user reads it because of an object. Each one suffices; without any, the user does not see it',
    ),
});

const PERMISSIONS = z.object({
  user: z.string(),
  login: z.string(),
  group: z.string(),
  active: z.boolean(),
  role: z
    .union([z.object({ _id: z.string(), name: z.string().optional() }), z.null()])
    .describe('`null` if the user has no role, or if the caller does not see it'),
  credentials: z
    .array(z.string())
    .nullable()
    .describe('The lines of the role, with the object of the user in place of `:object`; `null` if `role` is'),
  method: z.string().optional(),
  path: z.string().optional(),
  status: z
    .literal([200, 401, 403, 404])
    .optional()
    .describe(
      'What the rules of permissions say: 401 if the user is not active, 403 if no line of the role permits the request, 404 if the ' +
        'user does not see the entity, otherwise 200. The request may still be refused for another reason',
    ),
  credential: z.string().nullable().optional().describe('The first line of the role that permits the request'),
  entity: z.union([ENTITY, z.null()]).optional().describe('The entity that the path names'),
});

const explainPermissions = defineRoute({
  method: 'GET',
  path: '/api/v1/users/:id/permissions',
  name: 'explainPermissions',
  tag: 'users',
  summary: 'What a user may do, and why',
  docs: 'What a user may do, and [why](permissions.md#explain): accepts `method` and `path`',
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  query: {
    method: {
      component: 'permissionMethod',
      schema: z.enum(METHODS),
      example: 'PATCH',
      description: 'The method of a request; with `path`',
    },
    path: {
      component: 'permissionPath',
      schema: z.string(),
      example: '/objects/truck-7',
      description: 'The path of a request, with or without `/api/v1`; with `method`',
    },
  },
  answer: {
    description: 'The permissions of the user; with `method` and `path`, also whether they permit that request',
    schema: every(SUCCESS, PERMISSIONS),
  },
  errors: [404],
  handle: (deps: PermissionDeps) => async (req, res) => {
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
  },
});

export const PERMISSION_ROUTES = [explainPermissions];

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
  const { user, object, credentials } = subject;
  const theirScope = scopeOf({ userId: user._id, groupId: String(user.group), object, credentials });
  const theirStore = await deps.findStore(name, theirScope);
  const store = await deps.findStore(name, scope);
  if (store === null) throw notFound();
  const theirs = theirStore === null ? null : await getVisible(deps.database, theirStore, theirScope, key);
  const entity = await getReadable(deps.database, store, scope, theirs?._id ?? key);
  return { store: store.name, _id: entity._id, reasons: theirs === null ? [] : reasonsOf(theirs, subject) };
}

/** Every reason by itself suffices. */
function reasonsOf(entity: Entity, { user }: Subject): string[] {
  const reasons = [
    ...(entity.branch.includes(String(user.group)) ? ['group'] : []),
    ...(entity.owner === user._id ? ['owner'] : []),
    ...(entity.access.includes(user._id) ? ['shared'] : []),
    ...(entity._builtin === true ? ['built-in'] : []),
  ];
  return reasons.length > 0 ? reasons : ['object'];
}

async function getVisible(database: Database, store: Store, scope: Scope, key: unknown): Promise<Entity | null> {
  if (typeof key !== 'string') return null;
  try {
    return await getReadable(database, store, scope, key);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}
