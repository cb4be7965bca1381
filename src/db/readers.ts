/** Who reads an object's packets: found once, and kept true by the changes of objects as they pass. */
import { LRUCache } from 'lru-cache';
import { ObjectId } from 'mongodb';
import { type Guarded, readersOf } from '../model/access.js';
import { atMost } from '../model/cache-size.js';
import { type Change, mayBeOther } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import type { Database } from './connect.js';
import { toPlain, translated } from './documents.js';

const GUARDS: readonly (keyof Guarded)[] = ['owner', 'branch', 'access'];

export interface Readers {
  /** The addresses of those who may see the object; null when there is no such object (any more). */
  find(objectId: string): readonly string[] | null | Promise<readonly string[] | null>;
  apply(change: Change): void;
  forgetAll(): void;
}

export function createReaders(database: Database): Readers {
  const known = new LRUCache<string, readonly string[]>(atMost(LIMITS.cachedReaders));
  let applied = 0;
  const load = async (objectId: string): Promise<readonly string[] | null> => {
    const before = applied;
    const object = await translated(() =>
      database.db
        .collection('objects')
        .findOne({ _id: new ObjectId(objectId) }, { projection: { owner: 1, branch: 1, access: 1 } }),
    );
    if (object === null) return null;
    const readers = readersOf(toPlain(object) as unknown as Guarded);
    // What was being loaded while an object changed is used, but not kept.
    if (applied === before) known.set(objectId, readers);
    return readers;
  };
  return {
    find: (objectId) => known.get(objectId) ?? load(objectId),
    apply(change) {
      if (change.store !== 'objects' || !mayBeOther(change, GUARDS)) return;
      const { id, guard } = change;
      applied++;
      if (guard === null) known.delete(id);
      else known.set(id, readersOf(guard));
    },
    forgetAll() {
      applied++;
      known.clear();
    },
  };
}
