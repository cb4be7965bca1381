/** Routes: the generic interface, the same for every built-in and custom store. */
import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import { type Scope, scopeOf } from '../core/access.js';
import { FIRST_USER_ID } from '../core/builtin.js';
import { type Entity, isId, parseNewEntity, parsePatch } from '../core/entity.js';
import { badRequest, methodNotAllowed, notFound } from '../core/errors.js';
import { type JsonObject, parseObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore, SINGLE_ONLY, STORES, type Store } from '../core/stores.js';
import { readState } from '../packets/latest.js';
import type { BodyDeps } from '../platform/http/body.js';
import { callerOf, scopeIn } from '../platform/http/caller.js';
import { listDatabaseFor } from '../platform/http/list-caller.js';
import { LIST_QUERY, parseListQuery, withStateKind } from '../platform/http/list-params.js';
import { ENTITY_KEY, ID, ONLY_QUERY } from '../platform/http/parameters.js';
import { parseFields, parseIsMine } from '../platform/http/query-params.js';
import { sendEntity, sendEntityJson, sendJson, sendPage } from '../platform/http/responses.js';
import type { Parameter, Route } from '../platform/http/route.js';
import { allOf, entityOf, named, pageOf, schemaRef } from '../platform/http/schema.js';
import { BULK_QUERY, BULK_RESULT, type BulkDeps, changeMany, removeMany } from './bulk-routes.js';
import { isByState, listByState, summarizeByState } from './by-state.js';
import { createInAddedStore } from './custom-stores.js';
import { changeOne, queueCheck, removeOne, type Writer } from './entity-writes.js';
import { EXAMPLES } from './examples.js';
import { getReferencedId, type StoreHooks, toNewEntity } from './hooks.js';
import { findPlace } from './place.js';
import { listEntities, readChanged, readEntity, summarizeEntities } from './read.js';
import { titleOf } from './title.js';
import { getChangeable, shareEntity } from './write.js';

export interface EntityDeps extends BulkDeps, BodyDeps {
  readonly findStore: (name: string, scope: Scope) => Promise<Store | null>;
}

type Handler = (deps: EntityDeps) => RequestHandler;

/** Finds the store of a request, before its routes. */
export const findStoreOf: Handler = (deps) => async (req, res, next) => {
  const store = await deps.findStore(String(req.params.store).toLowerCase(), scopeIn(res));
  if (store === null) throw notFound();
  const allowed = store.readOnly ? READ_METHODS : isSingleOnly(store, req) ? SINGLE_METHODS : null;
  if (allowed !== null && !allowed.includes(req.method)) throw methodNotAllowed(allowed);
  res.locals.store = store;
  next();
};

const READ_METHODS = ['GET', 'HEAD'];

/** Of a list without bulk requests. */
const SINGLE_METHODS = ['GET', 'POST', 'HEAD'];

const isSingleOnly = ({ name }: Store, { path }: Request): boolean => SINGLE_ONLY.has(name) && path === '/';

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

/** Parameters of bulk requests, and of removals of packets. */
const SELECTING = /^(?:from|to|begin|end|search|where|where[._].*|dry[-_ ]?run)$/i;

/** Whether it selects nothing: an empty field of a form, or `dryRun` switched off. */
const isIdle = (name: string, value: unknown): boolean =>
  name === 'dryRun'
    ? value === 'false' || value === '0'
    : /^(?:from|to|begin|end|search)$/.test(name) && typeof value === 'string' && value.trim() === '';

/** Who names one entity and a selection means something else: ignoring the selection would change or remove the entity. */
function refuseSelection({ query }: Request): void {
  const name = Object.keys(query).find((one) => SELECTING.test(one) && !isIdle(one, query[one]));
  if (name === undefined) return;
  throw badRequest(
    `${JSON.stringify(name.slice(0, 64))}: this request is about one entity, whole; nothing was changed`,
  );
}

const change: Handler = (deps) => async (req, res) => {
  refuseSelection(req);
  const writer = writerIn(res);
  const given = parsePatch(writer.store, req.body ?? {});
  res.locals.fields = Object.keys(given);
  await sendChanged(
    deps,
    res,
    await changeOne(deps, writer, String(req.params.id), given, (change) => deps.recordChange(req, res, change)),
  );
};

const remove: Handler = (deps) => async (req, res) => {
  refuseSelection(req);
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
    const present = await getChangeable(deps.database, store, scope, key);
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

/** The answer with a token that was created: no other one contains it. */
export const CREATED_TOKEN = allOf(allOf(schemaRef('Token'), schemaRef('Success')), {
  type: 'object',
  properties: { token: { type: 'string' } },
  required: ['token'],
});

const STORE_NAME: Parameter = {
  schema: z.string().regex(/^[a-z][a-z0-9-]{0,63}$/),
  example: 'drivers',
  description: 'A store of your own',
};

const USER_KEY: Parameter = { schema: ID, example: FIRST_USER_ID, description: 'The `_id` of the user' };

const GROUP: Parameter = {
  schema: z.enum(['mine']),
  example: 'mine',
  description:
    'Creates the entity in the caller’s own group and ignores the group in the body, for entities exported from another installation',
};

const STATE_KIND: Parameter = {
  component: 'stateKind',
  schema: z.enum(['latest-of-each']),
  example: 'latest-of-each',
  description: `In place of \`state\`, each object has \`latest\`: the last value of each parameter with its time. At most ${LIMITS.latestObjects} objects; not with \`meta\``,
};

const LATEST_AFTER: Parameter = {
  schema: z.string(),
  example: '',
  description: `With \`state=latest-of-each\`: the parameter after which \`latest\` continues, by name. An object with more than ${LIMITS.latestParameters} parameters says in \`latestNext\` which one this is`,
};

/** What the routes of one store have in common; the name `:store` means all of them. */
function commonOf(name: string) {
  const isAny = name === ':store';
  const title = isAny ? 'Entity' : titleOf(name);
  const params: Record<string, Parameter> = isAny ? { store: STORE_NAME } : {};
  const all = { path: `/api/v1/${name}`, tag: isAny ? 'added stores' : name, auth: 'permission', params } as const;
  const one = { ...all, path: `${all.path}/:id`, params: { ...params, id: ENTITY_KEY } };
  return { name, title, all, one, whole: entityOf(title), example: EXAMPLES[title] };
}

type Common = ReturnType<typeof commonOf>;

const limitBytes = LIMITS.entityBodyBytes;

const readsOf = ({ name, title, all, one }: Common): Route<EntityDeps>[] => [
  {
    ...all,
    method: 'GET',
    name: `list${title}`,
    summary: 'Lists the entities that the caller sees',
    docs: 'The entities of a store that the caller sees; accepts [list parameters](#list-parameters)',
    limit: 'list',
    query: name === 'objects' ? { ...LIST_QUERY, state: STATE_KIND, latestAfter: LATEST_AFTER } : LIST_QUERY,
    answer: {
      description: 'The entities, sorted by `_id`',
      schema: pageOf(named(`${title}Fields`)),
      headers: ['Link'],
    },
    errors: [404, 413],
    handle: list,
  },
  {
    ...one,
    method: 'GET',
    name: `get${title}`,
    summary: 'Returns one entity',
    docs: 'One entity; accepts `only`',
    limit: 'request',
    query: ONLY_QUERY,
    answer: { description: 'The entity', schema: entityOf(`${title}Fields`) },
    errors: [404],
    handle: read,
  },
];

const writesOf = ({ name, title, all, one, whole, example }: Common): Route<EntityDeps>[] => [
  {
    ...all,
    method: 'POST',
    name: `create${title}`,
    summary: 'Creates an entity',
    docs: "Creates an entity. `?group=mine` creates it in the caller's own group and ignores the group in the body, for entities exported from another installation",
    limit: 'request',
    query: { group: GROUP },
    body: { schema: named(`${title}New`), example: example?.created, isRequired: true, limitBytes },
    answer: { description: 'The created entity', schema: name === 'tokens' ? CREATED_TOKEN : whole },
    errors: [404, 409],
    handle: create,
  },
  {
    ...one,
    method: 'PATCH',
    name: `change${title}`,
    summary: 'Merges the body into the entity: objects field by field; all other values are replaced',
    docs: 'Merges the body into the entity: objects are merged field by field, all other values are replaced. `parent` moves a [group](stores.md#groups)',
    limit: 'request',
    body: { schema: named(`${title}Change`), example: example?.changed, limitBytes },
    answer: { description: 'The changed entity', schema: whole },
    errors: [404, 409],
    handle: change,
  },
  {
    ...one,
    method: 'DELETE',
    name: `remove${title}`,
    summary: 'Removes the entity',
    docs: 'Removes the entity and returns it',
    limit: 'request',
    answer: { description: 'The removed entity', schema: whole },
    errors: [404, 409],
    handle: remove,
  },
];

const sharesOf = ({ title, one, whole }: Common): Route<EntityDeps>[] => [
  {
    ...one,
    path: `${one.path}/access`,
    method: 'POST',
    name: `share${title}`,
    summary: 'Shares the entity with a user',
    docs: "Shares the entity with a user whom the caller sees: `{user}`, the user's `_id`",
    limit: 'request',
    body: { schema: z.object({ user: z.string() }), example: { user: FIRST_USER_ID }, isRequired: true, limitBytes },
    answer: { description: 'The changed entity', schema: whole },
    errors: [404, 409],
    handle: share,
  },
  {
    ...one,
    path: `${one.path}/access/:user`,
    params: { ...one.params, user: USER_KEY },
    method: 'DELETE',
    name: `unshare${title}`,
    summary: 'Ends the sharing with a user',
    docs: 'Ends the sharing',
    limit: 'request',
    answer: { description: 'The changed entity', schema: whole },
    errors: [404],
    handle: unshare,
  },
];

const BULK_ANSWER = { description: 'What was done', schema: BULK_RESULT };

const bulkOf = ({ title, all, example }: Common): Route<EntityDeps>[] => [
  {
    ...all,
    method: 'PATCH',
    name: `changeMany${title}`,
    summary: 'Merges the body into each entity that the filters select; at least one filter is required',
    docs: '[Changes](#bulk-requests) all entities that filters select',
    limit: 'list',
    query: BULK_QUERY,
    body: { schema: named(`${title}Change`), example: example?.changed, isRequired: true, limitBytes },
    answer: BULK_ANSWER,
    errors: [404],
    handle: changeMany,
  },
  {
    ...all,
    method: 'DELETE',
    name: `removeMany${title}`,
    summary: 'Removes each entity that the filters select; at least one filter is required',
    docs: '[Removes](#bulk-requests) all entities that filters select',
    limit: 'list',
    query: BULK_QUERY,
    answer: BULK_ANSWER,
    errors: [404],
    handle: removeMany,
  },
];

function routesOf({ name, readOnly }: Pick<Store, 'name' | 'readOnly'>): Route<EntityDeps>[] {
  const common = commonOf(name);
  if (readOnly) return readsOf(common);
  return [
    ...readsOf(common),
    ...writesOf(common),
    ...sharesOf(common),
    ...(SINGLE_ONLY.has(name) ? [] : bulkOf(common)),
  ];
}

/** The routes of every store. */
export const STORE_ROUTES = routesOf({ name: ':store', readOnly: false });

/** The same for each built-in store, as the OpenAPI document shows them: with the fields of its entities. */
export const BUILT_IN_STORE_ROUTES = [...STORES.values()].flatMap(routesOf);
