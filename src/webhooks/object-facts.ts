/** By what objects are selected beside who sees them: their model and labels; kept true by the changes of objects. */
import { LRUCache } from 'lru-cache';
import { type Document, ObjectId } from 'mongodb';
import { cacheSize } from '../core/cache-size.js';
import { type Change, mayHaveChanged } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

export interface ObjectFacts {
  readonly model: string | null;
  readonly labels: readonly string[];
}

export interface ObjectFactsFinder {
  /** Null where there is no such object. */
  find(objectId: string): ObjectFacts | null | Promise<ObjectFacts | null>;
  apply(change: Change): void;
  forgetAll(): void;
}

const FIELDS = ['model', 'labels'];

export function createObjectFacts(database: Database): ObjectFactsFinder {
  const known = new LRUCache<string, ObjectFacts>(cacheSize(LIMITS.cachedObjectFacts));
  let applied = 0;
  const load = async (objectId: string): Promise<ObjectFacts | null> => {
    const before = applied;
    const found = await mapDriverErrors(() =>
      database.db
        .collection('objects')
        .findOne({ _id: new ObjectId(objectId) }, { projection: { model: 1, labels: 1 }, ...COMMITTED_READ }),
    );
    if (found === null) return null;
    const facts = toFacts(found);
    if (before === applied) known.set(objectId, facts);
    return facts;
  };
  return {
    find: (objectId) => known.get(objectId) ?? load(objectId),
    apply(change) {
      if (change.store !== 'objects' || !mayHaveChanged(change, FIELDS)) return;
      applied++;
      known.delete(change.id);
    },
    forgetAll() {
      applied++;
      known.clear();
    },
  };
}

/** The facts in a stored object. */
export function toFacts({ model, labels }: Document): ObjectFacts {
  const texts = Array.isArray(labels) ? labels.map(String) : [];
  return { model: model === undefined || model === null ? null : String(model), labels: texts };
}
