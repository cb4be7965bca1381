/** Caches the declarations of models by `_id`: every packet needs them. */
import { ObjectId } from 'mongodb';
import type { Change } from '../core/change.js';
import { parseTimeAhead } from '../core/duration.js';
import { isId } from '../core/entity.js';
import { LIMITS } from '../core/limits.js';
import { type Declarations, declarationsOf } from '../core/model.js';
import { createReadThroughCache } from '../platform/cache.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

export interface ModelFinder {
  /** A missing model declares nothing. */
  declarationsOf(modelId: string): Promise<Declarations>;
  invalidate(change: Pick<Change, 'store' | 'id'>): void;
  invalidateAll(): void;
}

/** A model may let packets be further ahead than the installation does. */
export const aheadMsOf = ({ clock }: Database, timeAhead: unknown): number =>
  Math.max(clock.aheadMs, parseTimeAhead(timeAhead) ?? 0);

export function createModelFinder(database: Database, isLive: () => boolean): ModelFinder {
  const known = createReadThroughCache(LIMITS.cachedModels, isLive, async (modelId) => {
    const named = { _id: new ObjectId(modelId) };
    const model = await mapDriverErrors(() => database.db.collection('models').findOne(named, COMMITTED_READ));
    return declarationsOf(model?.data, aheadMsOf(database, model?.timeAhead));
  });
  return {
    async declarationsOf(modelId) {
      return (isId(modelId) ? await known.find(modelId) : null) ?? declarationsOf(null, database.clock.aheadMs);
    },
    invalidate({ store, id }) {
      if (store === 'models') known.invalidate(id);
    },
    invalidateAll: known.invalidateAll,
  };
}
