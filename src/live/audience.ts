/** Caches the audience of each object's packets, and updates it from the changes of objects. */
import { LRUCache } from 'lru-cache';
import { type Document, ObjectId } from 'mongodb';
import { ACCESS_FIELDS, type AccessFields, audienceOf } from '../core/access.js';
import { cacheSize } from '../core/cache-size.js';
import { type Change, mayHaveChanged } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import { inBatches } from '../platform/mongo/driver/bulk-queue.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { isSnapshotGone, mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { type Snapshot, snapshotAfter } from '../platform/mongo/driver/snapshot.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';

export interface AudienceCache {
  /** The addresses of all who may see the object; null when the object does not exist. */
  find(objectId: string): readonly string[] | null | Promise<readonly string[] | null>;
  /** Loads the audiences of these objects with one query, so that `find` answers synchronously. Throws 503. */
  prepare(objectIds: readonly string[]): Promise<void>;
  apply(change: Change): void;
  invalidateAll(): void;
}

const PROJECTION = { owner: 1, branch: 1, access: 1 };

/**
 * `deliveredTo`: up to where every change is delivered; null while that is unknown. What is loaded is of that moment, like the permissions
 * of subscribers: a later audience would be given earlier packets, which it could not see before its own permissions changed.
 */
export function createAudienceCache(database: Database, deliveredTo: () => string | null): AudienceCache {
  const known = new LRUCache<string, readonly string[]>(cacheSize(LIMITS.cachedAudiences));
  /** Objects of the current batch that do not exist. */
  let absent = new Set<string>();
  let applied = 0;
  const load = async (objectId: string): Promise<readonly string[] | null> => {
    const before = applied;
    const found = await loadAudiences(database, [objectId], deliveredTo());
    const audience = found.get(objectId) ?? null;
    // A result that was loaded during a change may be outdated: it is used, but not cached.
    if (applied === before && audience !== null) known.set(objectId, audience);
    return audience;
  };
  return {
    find: (objectId) => known.get(objectId) ?? (absent.has(objectId) ? null : load(objectId)),
    async prepare(objectIds) {
      const missing = objectIds.filter((id) => known.get(id) === undefined);
      if (missing.length === 0) return;
      const none = new Set<string>();
      for (const batch of inBatches([...new Set(missing)], LIMITS.readersBatch)) {
        const before = applied;
        const found = await loadAudiences(database, batch, deliveredTo());
        if (applied !== before) continue;
        for (const id of batch) {
          const audience = found.get(id);
          if (audience === undefined) none.add(id);
          else known.set(id, audience);
        }
      }
      absent = none;
    },
    apply(change) {
      if (change.store !== 'objects' || !mayHaveChanged(change, ACCESS_FIELDS)) return;
      const { id, accessFields } = change;
      applied++;
      absent.delete(id);
      if (accessFields === null) known.delete(id);
      else known.set(id, audienceOf(accessFields));
    },
    invalidateAll() {
      applied++;
      known.clear();
      absent.clear();
    },
  };
}

async function loadAudiences(
  database: Database,
  objectIds: readonly string[],
  position: string | null,
): Promise<Map<string, readonly string[]>> {
  if (position === null) return findAudiences(database, objectIds, COMMITTED_READ);
  try {
    return await findAudiences(database, objectIds, snapshotAfter(position));
  } catch (error) {
    // The change stream is minutes late, or has just begun: it has to go on.
    if (!isSnapshotGone(error)) throw error;
    return findAudiences(database, objectIds, COMMITTED_READ);
  }
}

async function findAudiences(
  { db }: Database,
  objectIds: readonly string[],
  reading: Snapshot | typeof COMMITTED_READ,
): Promise<Map<string, readonly string[]>> {
  const filter = { _id: { $in: objectIds.map((id) => new ObjectId(id)) } };
  // The driver's own method has no way to name a moment.
  const one = { projection: PROJECTION, batchSize: objectIds.length + 1, singleBatch: true };
  const command = Object.assign({ find: 'objects', filter }, one, reading);
  const found: Document[] = await mapDriverErrors(async () => (await db.command(command)).cursor.firstBatch);
  return new Map(found.map((object) => [String(object._id), audienceOf(toPlain(object) as unknown as AccessFields)]));
}
