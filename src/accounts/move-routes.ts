/** Routes: moves of objects and users to other groups, one by one, and of the objects that filters select. */
import type { Request, Response } from 'express';
import { z } from 'zod';
import { type Caller, mayCall, mayCallObject } from '../core/access.js';
import { ROOT_GROUP_ID } from '../core/builtin.js';
import { isId } from '../core/entity.js';
import { badRequest, forbidden } from '../core/errors.js';
import { parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import { BULK_QUERY, BULK_RESULT, type BulkDeps, handleMany, type Named } from '../entities/bulk-routes.js';
import { readChanged } from '../entities/read.js';
import { titleOf } from '../entities/title.js';
import type { BodyDeps } from '../platform/http/body.js';
import { callerOf } from '../platform/http/caller.js';
import { ENTITY_KEY, ID } from '../platform/http/parameters.js';
import { sendEntityJson } from '../platform/http/responses.js';
import { defineRoute, type Route } from '../platform/http/route.js';
import { entityOf } from '../platform/http/schema.js';
import type { Audit } from './audit.js';
import { assertCanCreate, getMovable, type Move, moveOne } from './entity-moves.js';
import { requestOf } from './request-audit.js';

interface MoveDeps extends BulkDeps, BodyDeps {
  readonly audit: Pick<Audit, 'record'>;
}

/** Each move is a security event of its own: it changes who sees the entity. */
function record({ audit }: MoveDeps, req: Request, res: Response, { _id, from, to }: Move): void {
  if (from === to) return;
  const change = { fields: ['group'], before: { group: from }, after: { group: to } };
  audit.record({ ...requestOf(req, res), action: 'group changed', entityId: _id, ...change });
}

const moveOf = (name: 'objects' | 'users'): Route<MoveDeps> => {
  const title = titleOf(name);
  const store = builtInStore(name);
  return defineRoute({
    method: 'POST',
    path: `/api/v1/${name}/:id/move` as const,
    name: `move${title}`,
    tag: name,
    summary: 'Moves the entity to another group',
    docs: `Moves ${name === 'objects' ? 'an object' : 'a user'} to another [group](stores.md#moves): \`{group}\``,
    auth: 'permission',
    limit: 'request',
    params: { id: ENTITY_KEY },
    body: {
      schema: z.object({ group: ID.describe('The `_id` of a group of the caller') }),
      example: { group: ROOT_GROUP_ID },
      isRequired: true,
      limitBytes: LIMITS.entityBodyBytes,
    },
    answer: { description: 'The moved entity', schema: entityOf(title) },
    errors: [404, 409],
    handle: (deps: MoveDeps) => async (req, res) => {
      const caller = callerOf(res);
      const key = String(req.params.id);
      const groupId = parseGroup(req.body);
      assertCanCreate(caller, name);
      if (!mayCall(caller, 'PATCH', [name, key])) throw lacksPatch(name);
      const move = await moveOne(deps, { store, caller }, key, groupId);
      record(deps, req, res, move);
      sendEntityJson(res, await readChanged(deps.database, store, move._id));
    },
  });
};

const OBJECTS = builtInStore('objects');

const moveMany: Route<MoveDeps> = defineRoute({
  method: 'POST',
  path: '/api/v1/groups/:id/objects',
  name: 'moveObjects',
  tag: 'groups',
  summary: 'Moves each object that the filters select into the group; at least one filter is required',
  docs: '[Moves](stores.md#moves) all objects that filters select into a group; accepts what [bulk requests](#bulk-requests) do',
  auth: 'permission',
  limit: 'list',
  params: { id: ENTITY_KEY },
  query: BULK_QUERY,
  answer: { description: 'What was done', schema: BULK_RESULT },
  handle: (deps: MoveDeps) => async (req, res) => {
    const caller = callerOf(res);
    const groupId = parseGroup({ group: req.params.id });
    assertCanCreate(caller, OBJECTS.name);
    const writer = { store: OBJECTS, caller };
    await handleMany(deps, req, res, {
      writer,
      permits: (named) => mayMove(caller, named),
      check: (id) => getMovable(deps, writer, id, groupId),
      write: async (id) => record(deps, req, res, await moveOne(deps, writer, id, groupId)),
    });
  },
});

export const MOVE_ROUTES = [moveOf('objects'), moveOf('users'), moveMany];

/** Whether the credentials permit a single move of the object. */
function mayMove(caller: Caller, { _id, id }: Named): boolean {
  const object = { objectId: _id, ownId: id ?? null };
  return mayCallObject(caller, object, 'POST', ['move']) && mayCallObject(caller, object, 'PATCH', []);
}

const lacksPatch = (store: string) =>
  forbidden(`a move needs the right to change the entity, too: PATCH /${store}/<id>`);

function parseGroup(body: unknown): string {
  const { group } = parseObject(body ?? {});
  if (!isId(group)) throw badRequest('group: expected the _id of a group');
  return group.toLowerCase();
}
