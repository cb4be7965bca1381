/** Who reads an object's packets: found once, and kept true by the changes of objects as they pass. */
import { LRUCache } from 'lru-cache';
import { ObjectId } from 'mongodb';
import { type Guarded, readersOf } from '../model/access.js';
import { atMost } from '../model/cache-size.js';
import { type Change, mayBeOther } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import type { Database } from './connect.js';
import { toPlain, translated } from './documents.js';
import { inBatches } from './in-groups.js';

const GUARDS: readonly (keyof Guarded)[] = ['owner', 'branch', 'access'];

export interface Readers {
  /** The addresses of those who may see the object; null when there is no such object (any more). */
  find(objectId: string): readonly string[] | null | Promise<readonly string[] | null>;
  /** Finds those of all these objects in one question, for `find` to give at once. Throws 503. */
  prepare(objectIds: readonly string[]): Promise<void>;
  apply(change: Change): void;
  forgetAll(): void;
}

const PROJECTION = { owner: 1, branch: 1, access: 1 };

export function createReaders(database: Database): Readers {
  const known = new LRUCache<string, readonly string[]>(atMost(LIMITS.cachedReaders));
  /** Objects of the batch at hand that are not there. */
  let absent = new Set<string>();
  let applied = 0;
  const load = async (objectId: string): Promise<readonly string[] | null> => {
    const before = applied;
    const found = await findReaders(database, [objectId]);
    const readers = found.get(objectId) ?? null;
    // What was being loaded while an object changed is used, but not kept.
    if (applied === before && readers !== null) known.set(objectId, readers);
    return readers;
  };
  return {
    find: (objectId) => known.get(objectId) ?? (absent.has(objectId) ? null : load(objectId)),
    async prepare(objectIds) {
      const missing = objectIds.filter((id) => known.get(id) === undefined);
      if (missing.length === 0) return;
      const none = new Set<string>();
      for (const batch of inBatches([...new Set(missing)], LIMITS.readersBatch)) {
        const before = applied;
        const found = await findReaders(database, batch);
        if (applied !== before) continue;
        for (const id of batch) {
          const readers = found.get(id);
          if (readers === undefined) none.add(id);
          else known.set(id, readers);
        }
      }
      absent = none;
    },
    apply(change) {
      if (change.store !== 'objects' || !mayBeOther(change, GUARDS)) return;
      const { id, guard } = change;
      applied++;
      absent.delete(id);
      if (guard === null) known.delete(id);
      else known.set(id, readersOf(guard));
    },
    forgetAll() {
      applied++;
      known.clear();
      absent.clear();
    },
  };
}

async function findReaders(database: Database, objectIds: readonly string[]): Promise<Map<string, readonly string[]>> {
  const filter = { _id: { $in: objectIds.map((id) => new ObjectId(id)) } };
  const options = { projection: PROJECTION, batchSize: objectIds.length + 1 };
  const found = await translated(() => database.db.collection('objects').find(filter, options).toArray());
  return new Map(found.map((object) => [String(object._id), readersOf(toPlain(object) as unknown as Guarded)]));
}
