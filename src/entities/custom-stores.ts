/**
 * The stores that administrators add at run time: each is an entity of `stores` with its own collection. A store is invisible to
 * callers who may not use it: two groups in different branches may each have a store with the same name.
 */

import { LRUCache } from 'lru-cache';
import { type Document, ObjectId } from 'mongodb';
import type { AccessFields, Scope } from '../core/access.js';
import { ROOT_GROUP_ID } from '../core/builtin.js';
import { cacheSize } from '../core/cache-size.js';
import type { Change } from '../core/change.js';
import { type Entity, isId } from '../core/entity.js';
import { conflict, notFound } from '../core/errors.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { compileSchema, type Schema } from '../core/schema/schema.js';
import { builtInStore, customStore, STORES, type Store } from '../core/stores.js';
import { createReadThroughCache } from '../platform/cache.js';
import { clock } from '../platform/clock.js';
import type { FairQueue } from '../platform/fair-queue.js';
import { readObjectId, readObjectIds } from '../platform/mongo/bson/reader.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionName, collectionOf, prepareCollection } from '../platform/mongo/schema/collections.js';
import { findStored } from '../platform/mongo/schema/lookup.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';
import { createEntity } from './write.js';

export interface StoreFinder {
  /** Finds a built-in or added store by name; null when the scope may use none. */
  find(name: string, scope: Scope): Promise<Store | null>;
  invalidate(change: Pick<Change, 'store' | 'id'>): void;
  invalidateAll(): void;
}

interface AddedStore extends AccessFields {
  readonly id: string;
  readonly group: string;
  readonly isShared: boolean;
  readonly store: Store;
}

/** All added stores with one name. */
type SameNameStores = readonly AddedStore[];

export function createStoreFinder(database: Database, isLive: () => boolean, checkTurns: FairQueue): StoreFinder {
  const compile = createCompiler(checkTurns);
  const known = createReadThroughCache<SameNameStores>(LIMITS.customStores, isLive, (name) =>
    loadStores(database, name, compile),
  );
  return {
    async find(name, scope) {
      const builtIn = STORES.get(name);
      if (builtIn !== undefined) return builtIn;
      const added = await known.find(name);
      return added === null ? null : choose(database, added, scope);
    },
    invalidate({ store, id }) {
      if (store !== 'stores') return;
      // The id of a new store does not reveal its name, which may be cached with other stores.
      if (known.invalidateWhere((added) => added.some((one) => one.id === id)) === 0) known.invalidateAll();
    },
    invalidateAll: known.invalidateAll,
  };
}

/**
 * Chooses the store of this name for the scope: the store of its own group; else of the nearest group above; else a shared one;
 * else the oldest visible one.
 */
async function choose(database: Database, added: SameNameStores, scope: Scope): Promise<Store | null> {
  const own = added.find(({ group }) => group === scope.groupId);
  if (own !== undefined) return own.store;
  const found = await findStored(database, builtInStore('groups'), '_id', scope.groupId);
  const above = found === null ? [] : readObjectIds(found, 'branch').reverse();
  const isAbove = ({ group }: AddedStore): boolean => group !== ROOT_GROUP_ID && above.includes(group);
  const nearest = added.filter(isAbove).sort((a, b) => above.indexOf(a.group) - above.indexOf(b.group));
  const isSeen = ({ owner, access, branch }: AddedStore): boolean =>
    branch.includes(scope.groupId) || owner === scope.userId || access.includes(scope.userId);
  const chosen = nearest[0] ?? added.find(({ isShared }) => isShared) ?? added.find(isSeen);
  return chosen?.store ?? null;
}

type Compile = (stored: Entity) => Store;

/** Compiles a schema again only when the schema itself changed. */
function createCompiler(checkTurns: FairQueue): Compile {
  const compiled = new LRUCache<string, { text: string; schema: Schema }>(cacheSize(LIMITS.customStores));
  return ({ _id, name, branch, schema: given }) => {
    const text = JSON.stringify(given ?? {});
    const present = compiled.get(_id);
    const schema =
      present?.text === text ? present.schema : compileSchema((given ?? {}) as JsonObject, () => clock.cpuMs());
    compiled.set(_id, { text, schema });
    // The users of a tenant share its turns in stores of the tenant; in a store of the root group, each user has turns.
    const [, tenant] = branch;
    return customStore(innerName(name as string, _id), (fields, userId) =>
      checkTurns.run(tenant ?? userId, async () => schema.check(fields)),
    );
  };
}

/** The unique internal name of an added store, part of the name of its collection. */
export const innerName = (name: string, id: string): string => `${name}.${id}`;

async function loadStores(database: Database, name: string, compile: Compile): Promise<SameNameStores | null> {
  const stores = database.db.collection('stores');
  const found = await mapDriverErrors(() => stores.find({ name }, COMMITTED_READ).sort({ _id: 1 }).toArray());
  // Unknown names are not cached: their number is unbounded.
  return found.length === 0 ? null : found.map((document) => toAdded(document, compile));
}

function toAdded(document: Document, compile: Compile): AddedStore {
  const stored = toPlain(document) as unknown as Entity;
  const { _id, group, shared, owner, branch, access } = stored;
  const isShared = shared === true && group === ROOT_GROUP_ID;
  return { id: _id, group, isShared, store: compile(stored), owner, branch, access };
}

/** Creates a store with its collection. Throws 409 at the limit, or when the group already has a store of that name. */
export async function addStore(database: Database, entity: Entity): Promise<Entity> {
  await checkLimits(database, entity);
  await prepareCustomStore(database, innerName(entity.name as string, entity._id));
  try {
    return await createEntity(database, builtInStore('stores'), entity);
  } catch (error) {
    // If the outcome is unknown, the collection stays; `sweepStores` drops it at a later start if the store does not exist.
    if ((error as { status?: number }).status !== 503) await dropStore(database, entity);
    throw error;
  }
}

/** Creates the collection of a store. */
export async function prepareCustomStore(database: Database, inner: string): Promise<void> {
  await mapDriverErrors(
    () =>
      prepareCollection(
        database.db,
        customStore(inner, () => undefined),
      ),
    LIMITS.databaseOperationMs,
  );
}

/** Checks the limits: for a tenant (a group directly below the root, with all groups below it), and in total. */
async function checkLimits({ db }: Database, { branch }: Entity): Promise<void> {
  const count = (filter: Document, limit: number): Promise<number> =>
    mapDriverErrors(() => db.collection('stores').countDocuments(filter, { limit }));
  const [, tenant] = branch;
  if (tenant !== undefined) {
    const max = LIMITS.customStoresPerTenant;
    const own = await count({ branch: new ObjectId(tenant) }, max);
    if (own >= max) throw conflict(`your organisation already has ${max} added stores`);
  }
  if ((await count({}, LIMITS.customStores)) >= LIMITS.customStores) {
    throw conflict(`the installation already has ${LIMITS.customStores} added stores`);
  }
}

const collectionOfStore = ({ db }: Database, { _id, name }: Entity) =>
  db.collection(collectionName(innerName(name as string, _id)));

/** Whether a store has no entities. */
async function isEmptyStore(database: Database, entity: Entity): Promise<boolean> {
  const options = { projection: { _id: 1 } } as const;
  return (await mapDriverErrors(() => collectionOfStore(database, entity).findOne({}, options))) === null;
}

/** Throws a 409 if a store has entities. To a caller who sees none of them, it says how many there are. */
export async function assertEmptyStore(database: Database, entity: Entity, scope: Scope): Promise<void> {
  if (await isEmptyStore(database, entity)) return;
  const entities = collectionOfStore(database, entity);
  const visible = scopeFilter({ builtIn: false, followsObject: false }, scope);
  const seen = await mapDriverErrors(() => entities.findOne(visible, { projection: { _id: 1 } }));
  if (seen !== null) throw NOT_EMPTY();
  const limit = LIMITS.listEntities;
  const count = await mapDriverErrors(() => entities.countDocuments({}, { limit }));
  if (count === 0) return;
  const number = count === 1 ? 'an entity' : `${count === limit ? 'at least ' : ''}${count} entities`;
  throw conflict(`the store is not empty: it contains ${number} of other groups, which you do not see`);
}

async function dropStore(database: Database, entity: Entity): Promise<void> {
  await mapDriverErrors(() => collectionOfStore(database, entity).drop(), LIMITS.databaseOperationMs);
}

/**
 * Drops a store whose entity was just removed. `createInAddedStore` acknowledges no further entities. If an entity arrived just
 * before, restores the store and throws 409.
 */
export async function removeStore(database: Database, entity: Entity): Promise<void> {
  if (await isEmptyStore(database, entity)) await dropStore(database, entity);
  else {
    await createEntity(database, builtInStore('stores'), entity);
    throw NOT_EMPTY();
  }
}

const NOT_EMPTY = () => conflict('the store is not empty: remove its entities first');

/** Creates an entity in any store. Throws 404, without storing the entity, when an added store was removed meanwhile. */
export async function createInAddedStore(database: Database, store: Store, entity: Entity): Promise<Entity> {
  const created = await createEntity(database, store, entity);
  if (STORES.has(store.name) || (await exists(database, store))) return created;
  await mapDriverErrors(() => collectionOf(database, store).deleteOne({ _id: new ObjectId(entity._id) }));
  throw notFound();
}

async function exists(database: Database, { name }: Store): Promise<boolean> {
  const found = await findStored(database, builtInStore('stores'), '_id', name.slice(name.indexOf('.') + 1));
  return found !== null && readObjectId(found) !== null;
}

const PREFIX = 'custom.';

/** Drops collections without a store: a process ended while it created or removed the store. */
export async function sweepStores(database: Database, nowMs: number): Promise<void> {
  const { db } = database;
  const found = await mapDriverErrors(() => db.listCollections({ name: /^custom\./ }, { nameOnly: true }).toArray());
  const ids = new Map(
    found.map(({ name }) => [name.slice(name.lastIndexOf('.') + 1), name] as const).filter(([id]) => isId(id)),
  );
  const stores = await mapDriverErrors(() => db.collection('stores').find().project({ _id: 1 }).toArray());
  for (const { _id } of stores) ids.delete(String(_id));
  for (const [id, name] of ids) {
    const isYoung = nowMs - new ObjectId(id).getTimestamp().getTime() < LIMITS.orphanGraceMs;
    if (isYoung || !name.startsWith(PREFIX)) continue;
    await mapDriverErrors(() => db.collection(name).drop(), LIMITS.databaseOperationMs);
  }
}
