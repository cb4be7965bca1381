/** Finds objects by the keys that callers use for them. */
import { ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import { builtInStore } from '../core/stores.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { resolveKey } from '../platform/mongo/schema/lookup.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';

/** The `_id`s of the visible ones among these objects, which are named by `_id` or own id. Subscribers keep them until a change. */
export async function findObjectIds(database: Database, scope: Scope, keys: readonly string[]): Promise<string[]> {
  const store = builtInStore('objects');
  const ids: ObjectId[] = [];
  const ownIds: string[] = [];
  for (const named of await Promise.all(keys.map((key) => resolveKey(database, store, scope, key)))) {
    const [field, value] = named ?? [];
    if (field === '_id') ids.push(new ObjectId(value));
    else if (value !== undefined) ownIds.push(value);
  }
  const filter = { $and: [{ $or: [{ _id: { $in: ids } }, { id: { $in: ownIds } }] }, scopeFilter(store, scope)] };
  const found = await mapDriverErrors(() =>
    collectionOf(database, store)
      .find(filter, { projection: { _id: 1 }, ...COMMITTED_READ })
      .toArray(),
  );
  return found.map(({ _id }) => String(_id));
}
