/** The stores that administrators add at run time: each an entity of `stores`, with a collection of its own. */
import type { Collection } from 'mongodb';
import type { Guarded, Scope } from '../model/access.js';
import { ROOT_GROUP_ID } from '../model/builtin.js';
import type { Change } from '../model/change.js';
import type { JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { compileSchema } from '../model/schema/schema.js';
import { builtInStore, customStore, STORES, type Store } from '../model/stores.js';
import { holdsObjectId } from './bson.js';
import { findStored } from './by-key.js';
import { collectionOf, type Database, prepareCollection } from './connect.js';
import { toPlain, translated } from './documents.js';
import { createKnown } from './known.js';

export interface StoreFinder {
  /** A store by name, built-in or added; null when there is none that the scope may use. */
  find(name: string, scope: Scope): Promise<Store | null>;
  /** Forgets what a change made untrue. */
  forget(change: Pick<Change, 'store' | 'id'>): void;
  forgetAll(): void;
}

export function createStoreFinder(database: Database, isLive: () => boolean): StoreFinder {
  const known = createKnown(LIMITS.customStores, isLive, (name) => loadStore(database, name));
  return {
    async find(name, scope) {
      const builtIn = STORES.get(name);
      if (builtIn !== undefined) return builtIn;
      const added = await known.find(name);
      return added !== null && (await mayUse(database, added, scope)) ? added.store : null;
    },
    forget({ store }) {
      // A change names the entity, not the store that it describes; there are few.
      if (store === 'stores') known.forgetAll();
    },
    forgetAll: known.forgetAll,
  };
}

interface AddedStore extends Guarded {
  readonly store: Store;
  readonly group: string;
}

/** A store is for its group and those below it, and for whoever sees it otherwise; that of the root group so is for all. */
async function mayUse(
  database: Database,
  { group, branch, owner, access }: AddedStore,
  scope: Scope,
): Promise<boolean> {
  if (group === ROOT_GROUP_ID || branch.includes(scope.groupId)) return true;
  if (owner === scope.userId || access.includes(scope.userId)) return true;
  const own = await findStored(database, builtInStore('groups'), '_id', scope.groupId);
  return own !== null && holdsObjectId(own, 'branch', group);
}

async function loadStore(database: Database, name: string): Promise<AddedStore | null> {
  const found = await translated(() => database.db.collection('stores').findOne({ name }));
  if (found === null) return null;
  const { check } = compileSchema((found.schema ?? {}) as JsonObject, () => performance.now());
  const { owner, group, branch, access } = toPlain(found) as unknown as Guarded & { group: string };
  return { store: customStore(name, check), owner, group, branch, access };
}

/** Makes the collection of a store that is being added; its entities are found there. */
export async function prepareCustomStore(database: Database, name: string): Promise<Collection> {
  const store = customStore(name, () => undefined);
  await translated(() => prepareCollection(database.db, store), LIMITS.databaseOperationMs);
  return collectionOf(database, store);
}

/** Whether there are as many added stores as there may be. */
export async function isFullOfStores(database: Database): Promise<boolean> {
  const limit = LIMITS.customStores;
  return (await translated(() => database.db.collection('stores').countDocuments({}, { limit }))) >= limit;
}

/** Removes the collection of a store that was removed. */
export async function dropCustomStore(database: Database, name: string): Promise<void> {
  const store = customStore(name, () => undefined);
  await translated(() => collectionOf(database, store).drop(), LIMITS.databaseOperationMs);
}
