/** Routes: the generic interface, the same for every built-in and custom store. */
import { type RequestHandler, type Response, Router } from 'express';
import { type Scope, scopeOf } from '../core/access.js';
import { type Entity, isId, parseNewEntity, parsePatch } from '../core/entity.js';
import { badRequest, methodNotAllowed, notFound } from '../core/errors.js';
import { type JsonObject, parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore, STORES, type Store } from '../core/stores.js';
import { readState } from '../packets/latest.js';
import { type BodyDeps, jsonBody } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { allowMethods } from '../platform/http/errors.js';
import { listDatabaseFor } from '../platform/http/list-caller.js';
import { parseFields, parseIsMine, parseListQuery, withStateKind } from '../platform/http/query-params.js';
import { sendEntity, sendEntityJson, sendJson, sendPage } from '../platform/http/responses.js';
import { type BulkDeps, changeMany, refuseSingleOnly, removeMany } from './bulk-routes.js';
import { isByState, listByState, summarizeByState } from './by-state.js';
import { createInAddedStore } from './custom-stores.js';
import { changeOne, queueCheck, removeOne, type Writer } from './entity-writes.js';
import { getReferencedId, type StoreHooks, toNewEntity } from './hooks.js';
import { findPlace } from './place.js';
import { getEntity, listEntities, readChanged, readEntity, summarizeEntities } from './read.js';
import { getChangeable, shareEntity } from './write.js';

export interface EntityDeps extends BulkDeps, BodyDeps {
  readonly findStore: (name: string, scope: Scope) => Promise<Store | null>;
}

type Handler = (deps: EntityDeps) => RequestHandler;

export function createEntityRouter(deps: EntityDeps): Router {
  const router = Router();
  const body = (handle: RequestHandler): RequestHandler[] => jsonBody(LIMITS.entityBodyBytes, deps, handle);
  router.use('/:store', async (req, res, next) => {
    const store = await deps.findStore(req.params.store.toLowerCase(), scopeIn(res));
    if (store === null) throw notFound();
    if (store.readOnly && req.method !== 'GET' && req.method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD']);
    res.locals.store = store;
    next();
  });
  router
    .route('/:store')
    .get(list(deps))
    .post(body(create(deps)))
    .all(refuseSingleOnly)
    .patch(body(changeMany(deps)))
    .delete(removeMany(deps))
    .all(allowMethods('GET', 'POST', 'PATCH', 'DELETE'));
  router
    .route('/:store/:id')
    .get(read(deps))
    .patch(body(change(deps)))
    .delete(remove(deps))
    .all(allowMethods('GET', 'PATCH', 'DELETE'));
  router
    .route('/:store/:id/access')
    .post(body(share(deps)))
    .all(allowMethods('POST'));
  router.route('/:store/:id/access/:user').delete(unshare(deps)).all(allowMethods('DELETE'));
  return router;
}

const storeIn = (res: Response): Store => res.locals.store as Store;

const writerIn = (res: Response): Writer => ({ store: storeIn(res), caller: callerOf(res) });

const list: Handler = (deps) => async (req, res) => {
  const store = storeIn(res);
  const scope = scopeIn(res);
  const database = listDatabaseFor(deps, req, res);
  const asked = parseListQuery(req.query);
  const query = store.name === 'objects' ? withStateKind(req.query, asked) : asked;
  const byState = isByState(store, query);
  if (query.kind === 'page') {
    const page = byState ? listByState(database, scope, query) : listEntities(database, store, scope, query);
    sendPage(req, res, query, await page);
    return;
  }
  const summary = byState ? summarizeByState(database, scope, query) : summarizeEntities(database, store, scope, query);
  sendJson(res, await summary);
};

const read: Handler = (deps) => async (req, res) => {
  const only = parseFields(req.query);
  sendEntityJson(res, await readEntity(deps.database, storeIn(res), scopeIn(res), String(req.params.id), only));
};

const create: Handler = (deps) => async (req, res) => {
  const store = storeIn(res);
  const caller = callerOf(res);
  const hooks = deps.hooks.get(store.name);
  const requested = parseNewEntity(store, req.body ?? {}, parseIsMine(req.query));
  if (!STORES.has(store.name)) {
    await queueCheck(deps, writerIn(res), async () => store.checkWhole?.(requested.fields, caller.userId));
  }
  const created = hooks?.create
    ? await hooks.create(caller, requested)
    : await createPlain(deps, store, hooks, { caller, ...requested });
  deps.invalidate(store.name, String(created._id));
  res.locals.entityId = created._id;
  sendEntity(res, created);
};

async function createPlain(
  deps: EntityDeps,
  store: Store,
  hooks: StoreHooks | undefined,
  requested: { caller: ReturnType<typeof callerOf>; fields: JsonObject; group: string | null },
): Promise<Entity> {
  const { caller, group } = requested;
  // Both need the database: waiting for them together saves a round trip.
  const [fields, place] = await Promise.all([
    hooks?.prepareNew?.(caller, requested.fields) ?? requested.fields,
    findPlace(deps.database, scopeOf(caller), group),
  ]);
  return createInAddedStore(deps.database, store, toNewEntity(caller, fields, place, deps.now()));
}

const change: Handler = (deps) => async (req, res) => {
  const writer = writerIn(res);
  const given = parsePatch(writer.store, req.body ?? {});
  res.locals.fields = Object.keys(given);
  await sendChanged(deps, res, await changeOne(deps, writer, String(req.params.id), given));
};

const remove: Handler = (deps) => async (req, res) => {
  const writer = writerIn(res);
  // Read before the packets go as well.
  const readLast = ({ _id }: Entity) => (writer.store.name === 'objects' ? readState(deps.database, _id) : null);
  const { removed, last: state } = await removeOne(deps, writer, String(req.params.id), readLast);
  res.locals.entityId = removed._id;
  sendEntity(res, state === null ? removed : { ...removed, state });
};

const share: Handler = (deps) => async (req, res) => {
  const { user } = parseObject(req.body ?? {});
  if (!isId(user)) throw badRequest('user: expected the _id of a user');
  // Checked before the user is looked up: the answer must not depend on the user if the entity is not changeable.
  await getChangeable(deps.database, storeIn(res), scopeIn(res), String(req.params.id));
  const sharer = { database: deps.database, caller: callerOf(res) };
  const userId = await getReferencedId(sharer, 'user', builtInStore('users'), user.toLowerCase());
  await shareWith(deps, res, String(req.params.id), userId, true);
};

const unshare: Handler = (deps) => async (req, res) => {
  const user = String(req.params.user).toLowerCase();
  if (!isId(user)) throw notFound();
  await shareWith(deps, res, String(req.params.id), user, false);
};

async function shareWith(deps: EntityDeps, res: Response, key: string, userId: string, shared: boolean) {
  const store = storeIn(res);
  const scope = scopeIn(res);
  const { afterShare, shareMarks } = deps.hooks.get(store.name) ?? {};
  if (!shared) {
    const present = await getEntity(deps.database, store, scope, key);
    if (!present.access.includes(userId)) {
      // An earlier request may have stopped between the change and its hook.
      await afterShare?.(present);
      throw notFound();
    }
  }
  const marks = (shared && shareMarks?.()) || {};
  const _id = await shareEntity(deps.database, store, scope, key, { userId, shared, nowMs: deps.now(), marks });
  await afterShare?.({ _id });
  await sendChanged(deps, res, _id);
}

async function sendChanged({ database, invalidate }: EntityDeps, res: Response, id: string): Promise<void> {
  const store = storeIn(res);
  invalidate(store.name, id);
  res.locals.entityId = id;
  sendEntityJson(res, await readChanged(database, store, id));
}
