/** The stores that administrators add at run time: each an entity of `stores`, with a collection of its own. */
import type { Collection } from 'mongodb';
import type { Change } from '../model/change.js';
import type { JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { compileSchema } from '../model/schema/schema.js';
import { customStore, STORES, type Store } from '../model/stores.js';
import { collectionOf, type Database, prepareCollection } from './connect.js';
import { translated } from './documents.js';
import { createKnown } from './known.js';

export interface StoreFinder {
  /** A store by name, built-in or added; null when there is none. */
  find(name: string): Promise<Store | null>;
  /** Forgets what a change made untrue. */
  forget(change: Pick<Change, 'store' | 'id'>): void;
  forgetAll(): void;
}

export function createStoreFinder(database: Database, isLive: () => boolean): StoreFinder {
  const known = createKnown(LIMITS.customStores, isLive, (name) => loadStore(database, name));
  return {
    async find(name) {
      return STORES.get(name) ?? known.find(name);
    },
    forget({ store }) {
      // A change names the entity, not the store that it describes; there are few.
      if (store === 'stores') known.forgetAll();
    },
    forgetAll: known.forgetAll,
  };
}

async function loadStore(database: Database, name: string): Promise<Store | null> {
  const found = await translated(() => database.db.collection('stores').findOne({ name }));
  if (found === null) return null;
  return customStore(name, compileSchema((found.schema ?? {}) as JsonObject, () => performance.now()).check);
}

/** Makes the collection of a store that is being added; its entities are found there. */
export async function prepareCustomStore(database: Database, name: string): Promise<Collection> {
  const store = customStore(name, () => undefined);
  await translated(() => prepareCollection(database.db, store), LIMITS.databaseOperationMs);
  return collectionOf(database, store);
}
