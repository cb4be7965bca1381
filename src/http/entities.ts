/** The generic interface: the same routes for every store, built-in or added. */
import { type RequestHandler, type Response, Router } from 'express';
import { findPlace } from '../db/accounts.js';
import type { Database } from '../db/connect.js';
import { createInStore } from '../db/custom-stores.js';
import { getEntity, listEntities, readChanged, readEntity, summarizeEntities } from '../db/entities.js';
import { readState } from '../db/states.js';
import { changeEntity, getChangeable, removeEntity, shareEntity } from '../db/writes.js';
import { badRequest, methodNotAllowed, notFound } from '../errors.js';
import type { FairQueue } from '../fairness/fair-queue.js';
import { type Scope, scopeOf } from '../model/access.js';
import { type Entity, isId, readNew, readPatch } from '../model/entity.js';
import { type JsonObject, readObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { builtInStore, STORES, type Store } from '../model/stores.js';
import { sendEntity, sendEntityJson, sendJson, sendPage } from './answer.js';
import { type BodyParts, jsonBody } from './body.js';
import { callerOf, scopeIn } from './caller.js';
import { only } from './failure.js';
import { type ListParts, listDatabaseFor } from './lists.js';
import { readIsMine, readListQuery, readOnly } from './query.js';
import { getReferencedId, type Rule, toNewEntity } from './rules/rule.js';

export interface EntityParts extends ListParts, BodyParts {
  readonly database: Database;
  readonly findStore: (name: string, scope: Scope) => Promise<Store | null>;
  readonly rules: ReadonlyMap<string, Rule>;
  readonly checkQueue: FairQueue;
  /** Tells that an entity was written, so that what was derived from it is forgotten before the answer. */
  readonly written: (store: string, id: string) => void;
  readonly now: () => number;
}

type Handler = (parts: EntityParts) => RequestHandler;

export function createEntityRouter(parts: EntityParts): Router {
  const router = Router();
  const body = (handle: RequestHandler): RequestHandler[] => jsonBody(LIMITS.entityBodyBytes, parts, handle);
  router.use('/:store', async (req, res, next) => {
    const store = await parts.findStore(req.params.store.toLowerCase(), scopeIn(res));
    if (store === null) throw notFound();
    if (store.readOnly && req.method !== 'GET' && req.method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD']);
    res.locals.store = store;
    next();
  });
  router
    .route('/:store')
    .get(list(parts))
    .post(body(create(parts)))
    .all(only('GET', 'POST'));
  router
    .route('/:store/:id')
    .get(read(parts))
    .patch(body(change(parts)))
    .delete(remove(parts))
    .all(only('GET', 'PATCH', 'DELETE'));
  router
    .route('/:store/:id/access')
    .post(body(share(parts)))
    .all(only('POST'));
  router.route('/:store/:id/access/:user').delete(unshare(parts)).all(only('DELETE'));
  return router;
}

const storeIn = (res: Response): Store => res.locals.store as Store;

/** Schemas of tenants' own cost what they may cost: their callers take turns. */
const inCheckTurn = <T>({ checkQueue }: EntityParts, res: Response, work: () => Promise<T>): Promise<T> =>
  STORES.has(storeIn(res).name) ? work() : checkQueue.run(callerOf(res).userId, work);

const list: Handler = (parts) => async (req, res) => {
  const query = readListQuery(req.query);
  const [store, scope, database] = [storeIn(res), scopeIn(res), listDatabaseFor(parts, req, res)];
  if (query.kind === 'summary') sendJson(res, await summarizeEntities(database, store, scope, query));
  else sendPage(req, res, query, await listEntities(database, store, scope, query));
};

const read: Handler = (parts) => async (req, res) => {
  const only = readOnly(req.query);
  sendEntityJson(res, await readEntity(parts.database, storeIn(res), scopeIn(res), String(req.params.id), only));
};

const create: Handler = (parts) => async (req, res) => {
  const [store, caller] = [storeIn(res), callerOf(res)];
  const rule = parts.rules.get(store.name);
  const wanted = await inCheckTurn(parts, res, async () => readNew(store, req.body ?? {}, readIsMine(req.query)));
  const created = rule?.create
    ? await rule.create(caller, wanted)
    : await createPlain(parts, store, rule, { caller, ...wanted });
  parts.written(store.name, String(created._id));
  res.locals.entityId = created._id;
  sendEntity(res, created);
};

async function createPlain(
  parts: EntityParts,
  store: Store,
  rule: Rule | undefined,
  wanted: { caller: ReturnType<typeof callerOf>; fields: JsonObject; group: string | null },
): Promise<Entity> {
  const { caller, group } = wanted;
  // What is asked of the database for both is asked at once.
  const [fields, place] = await Promise.all([
    rule?.prepareNew?.(caller, wanted.fields) ?? wanted.fields,
    findPlace(parts.database, scopeOf(caller), group),
  ]);
  return createInStore(parts.database, store, toNewEntity(caller, fields, place, parts.now()));
}

const change: Handler = (parts) => async (req, res) => {
  const [store, scope, key] = [storeIn(res), scopeIn(res), String(req.params.id)];
  const rule = parts.rules.get(store.name);
  const given = readPatch(store, req.body ?? {});
  res.locals.fields = Object.keys(given);
  const patch = rule?.preparePatch ? await rule.preparePatch(callerOf(res), key, given) : given;
  const nowMs = parts.now();
  const _id = await inCheckTurn(parts, res, () => changeEntity(parts.database, store, scope, key, { patch, nowMs }));
  await rule?.afterChange?.({ _id }, patch);
  await sendChanged(parts, res, _id);
};

const remove: Handler = (parts) => async (req, res) => {
  const [store, scope, key] = [storeIn(res), scopeIn(res), String(req.params.id)];
  const rule = parts.rules.get(store.name);
  await rule?.beforeRemove?.(callerOf(res), key);
  const removed = await removeEntity(parts.database, store, scope, key);
  parts.written(store.name, removed._id);
  res.locals.entityId = removed._id;
  const state = store.name === 'objects' ? await readState(parts.database, removed._id) : null;
  await rule?.afterRemove?.(removed);
  sendEntity(res, state === null ? removed : { ...removed, state });
};

const share: Handler = (parts) => async (req, res) => {
  const { user } = readObject(req.body ?? {});
  if (!isId(user)) throw badRequest('user: expected the _id of a user');
  // What the caller does not see, or may not change, is refused whoever it would be shared with.
  await getChangeable(parts.database, storeIn(res), scopeIn(res), String(req.params.id));
  const sharer = { database: parts.database, caller: callerOf(res) };
  const userId = await getReferencedId(sharer, 'user', builtInStore('users'), user.toLowerCase());
  await shareWith(parts, res, String(req.params.id), userId, true);
};

const unshare: Handler = (parts) => async (req, res) => {
  const user = String(req.params.user).toLowerCase();
  if (!isId(user)) throw notFound();
  await shareWith(parts, res, String(req.params.id), user, false);
};

async function shareWith(parts: EntityParts, res: Response, key: string, userId: string, shared: boolean) {
  const [store, scope] = [storeIn(res), scopeIn(res)];
  const follow = parts.rules.get(store.name)?.afterShare;
  if (!shared) {
    const present = await getEntity(parts.database, store, scope, key);
    if (!present.access.includes(userId)) {
      // Whoever took it back before may have been cut off half way.
      await follow?.(present);
      throw notFound();
    }
  }
  const _id = await shareEntity(parts.database, store, scope, key, { userId, shared, nowMs: parts.now() });
  await follow?.({ _id });
  await sendChanged(parts, res, _id);
}

async function sendChanged({ database, written }: EntityParts, res: Response, id: string): Promise<void> {
  const store = storeIn(res);
  written(store.name, id);
  res.locals.entityId = id;
  sendEntityJson(res, await readChanged(database, store, id));
}
