/**
 * The stores that administrators add at run time: each an entity of `stores`, with a collection of its own. Whoever may not use a
 * store does not learn of it: groups of which neither is above the other may give the same name, each to a store of its own.
 */

import { LRUCache } from 'lru-cache';
import { type Document, ObjectId } from 'mongodb';
import { conflict, notFound } from '../errors.js';
import type { Guarded, Scope } from '../model/access.js';
import { ROOT_GROUP_ID } from '../model/builtin.js';
import { atMost } from '../model/cache-size.js';
import type { Change } from '../model/change.js';
import { type Entity, isId } from '../model/entity.js';
import type { JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { compileSchema } from '../model/schema/schema.js';
import { builtInStore, customStore, STORES, type Store } from '../model/stores.js';
import { readObjectId, readObjectIds } from './bson.js';
import { findStored } from './by-key.js';
import { collectionName, collectionOf, type Database, prepareCollection } from './connect.js';
import { toPlain, translated } from './documents.js';
import { createKnown } from './known.js';
import { createEntity } from './writes.js';

export interface StoreFinder {
  /** A store by name, built-in or added; null when there is none that the scope may use. */
  find(name: string, scope: Scope): Promise<Store | null>;
  /** Forgets what a change made untrue. */
  forget(change: Pick<Change, 'store' | 'id'>): void;
  forgetAll(): void;
}

interface AddedStore extends Guarded {
  readonly id: string;
  readonly group: string;
  readonly isShared: boolean;
  readonly store: Store;
}

/** All stores of one name. */
type Namesakes = readonly AddedStore[];

export function createStoreFinder(database: Database, isLive: () => boolean): StoreFinder {
  const compile = createCompiler();
  const known = createKnown<Namesakes>(LIMITS.customStores, isLive, (name) => loadStores(database, name, compile));
  return {
    async find(name, scope) {
      const builtIn = STORES.get(name);
      if (builtIn !== undefined) return builtIn;
      const added = await known.find(name);
      return added === null ? null : choose(database, added, scope);
    },
    forget({ store, id }) {
      if (store !== 'stores') return;
      // Of a new one the name is not known here.
      if (known.forgetWhere((added) => added.some((one) => one.id === id)) === 0) known.forgetAll();
    },
    forgetAll: known.forgetAll,
  };
}

/**
 * The store that the name means to the scope: that of its own group; or of the nearest group above; or one that is there for all; or
 * else the oldest of those that it sees.
 */
async function choose(database: Database, added: Namesakes, scope: Scope): Promise<Store | null> {
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

type Compile = (id: string, name: string, schema: JsonObject) => Store;

/** A schema is compiled again only when it is another one: whatever else changes is read without that. */
function createCompiler(): Compile {
  const compiled = new LRUCache<string, { text: string; store: Store }>(atMost(LIMITS.customStores));
  return (id, name, schema) => {
    const text = JSON.stringify(schema);
    const present = compiled.get(id);
    if (present?.text === text) return present.store;
    const { check } = compileSchema(schema, () => performance.now());
    const store = customStore(innerName(name, id), check);
    compiled.set(id, { text, store });
    return store;
  };
}

/** Its own, and no other store's: that of its collection. */
export const innerName = (name: string, id: string): string => `${name}.${id}`;

async function loadStores(database: Database, name: string, compile: Compile): Promise<Namesakes | null> {
  const stores = database.db.collection('stores');
  const found = await translated(() => stores.find({ name }).sort({ _id: 1 }).toArray());
  // What nobody has is not remembered: there is no end of such names.
  return found.length === 0 ? null : found.map((document) => toAdded(document, compile));
}

function toAdded(document: Document, compile: Compile): AddedStore {
  const { _id, name, group, shared, owner, branch, access, schema } = toPlain(document) as unknown as Entity;
  const store = compile(_id, name as string, (schema ?? {}) as JsonObject);
  const isShared = shared === true && group === ROOT_GROUP_ID;
  return { id: _id, group: group as string, isShared, store, owner, branch, access };
}

/** Makes a store with its collection. Throws 409 where there are as many as there may be, or the group has one of that name. */
export async function addStore(database: Database, entity: Entity): Promise<Entity> {
  await checkRoom(database, entity);
  await prepareCustomStore(database, innerName(entity.name as string, entity._id));
  try {
    return await createEntity(database, builtInStore('stores'), entity);
  } catch (error) {
    // Where it is not known whether it was stored, the collection stays, and is looked for at the next start.
    if ((error as { status?: number }).status !== 503) await dropStore(database, entity);
    throw error;
  }
}

/** Makes the collection of a store. */
export async function prepareCustomStore(database: Database, inner: string): Promise<void> {
  await translated(
    () =>
      prepareCollection(
        database.db,
        customStore(inner, () => undefined),
      ),
    LIMITS.databaseOperationMs,
  );
}

/** Those of one tenant, a group just below the root with everything below it, are bounded more narrowly than all. */
async function checkRoom({ db }: Database, { branch }: Entity): Promise<void> {
  const count = (filter: Document, limit: number): Promise<number> =>
    translated(() => db.collection('stores').countDocuments(filter, { limit }));
  const [, tenant] = branch;
  if (tenant !== undefined) {
    const most = LIMITS.customStoresPerTenant;
    const own = await count({ branch: new ObjectId(tenant) }, most);
    if (own >= most) throw conflict(`there are ${most} added stores of your organisation already`);
  }
  if ((await count({}, LIMITS.customStores)) >= LIMITS.customStores) {
    throw conflict(`there are ${LIMITS.customStores} added stores already`);
  }
}

const collectionOfStore = ({ db }: Database, { _id, name }: Entity) =>
  db.collection(collectionName(innerName(name as string, _id)));

/** Whether there is nothing in a store. */
export async function isEmptyStore(database: Database, entity: Entity): Promise<boolean> {
  const options = { projection: { _id: 1 } } as const;
  return (await translated(() => collectionOfStore(database, entity).findOne({}, options))) === null;
}

async function dropStore(database: Database, entity: Entity): Promise<void> {
  await translated(() => collectionOfStore(database, entity).drop(), LIMITS.databaseOperationMs);
}

/**
 * Ends a store whose entity was just removed: from now on nothing is acknowledged that comes into it (`createInStore`). What came
 * just before keeps it: its entity is stored again. Throws 409 then.
 */
export async function endStore(database: Database, entity: Entity): Promise<void> {
  if (await isEmptyStore(database, entity)) await dropStore(database, entity);
  else {
    await createEntity(database, builtInStore('stores'), entity);
    throw NOT_EMPTY();
  }
}

export const NOT_EMPTY = () => conflict('the store is not empty: remove its entities first');

/** Stores an entity in any store. Throws 404 where an added one was removed meanwhile: then it is not stored. */
export async function createInStore(database: Database, store: Store, entity: Entity): Promise<Entity> {
  const created = await createEntity(database, store, entity);
  if (STORES.has(store.name) || (await isThere(database, store))) return created;
  await translated(() => collectionOf(database, store).deleteOne({ _id: new ObjectId(entity._id) }));
  throw notFound();
}

async function isThere(database: Database, { name }: Store): Promise<boolean> {
  const found = await findStored(database, builtInStore('stores'), '_id', name.slice(name.indexOf('.') + 1));
  return found !== null && readObjectId(found) !== null;
}

const FOLDER = 'custom.';

/** Drops what is left of stores that are gone, or never came to be, since a process ended in between. */
export async function sweepStores(database: Database, nowMs: number): Promise<void> {
  const { db } = database;
  const found = await translated(() => db.listCollections({ name: /^custom\./ }, { nameOnly: true }).toArray());
  const ids = new Map(
    found.map(({ name }) => [name.slice(name.lastIndexOf('.') + 1), name] as const).filter(([id]) => isId(id)),
  );
  const stores = await translated(() => db.collection('stores').find().project({ _id: 1 }).toArray());
  for (const { _id } of stores) ids.delete(String(_id));
  for (const [id, name] of ids) {
    const isYoung = nowMs - new ObjectId(id).getTimestamp().getTime() < LIMITS.orphanGraceMs;
    if (isYoung || !name.startsWith(FOLDER)) continue;
    await translated(() => db.collection(name).drop(), LIMITS.databaseOperationMs);
  }
}
