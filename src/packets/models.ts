/** Caches the declarations of models by `_id`: every packet needs them. */
import { ObjectId } from 'mongodb';
import type { Change } from '../core/change.js';
import { isId } from '../core/entity.js';
import { LIMITS } from '../core/limits.js';
import { type Declarations, declarationsOf } from '../core/model.js';
import { createReadThroughCache } from '../platform/cache.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

export interface ModelFinder {
  /** A missing model declares nothing. */
  declarationsOf(modelId: string): Promise<Declarations>;
  invalidate(change: Pick<Change, 'store' | 'id'>): void;
  invalidateAll(): void;
}

export function createModelFinder(database: Database, isLive: () => boolean): ModelFinder {
  const known = createReadThroughCache(LIMITS.cachedModels, isLive, async (modelId) => {
    const model = await mapDriverErrors(() => database.db.collection('models').findOne({ _id: new ObjectId(modelId) }));
    return declarationsOf(model?.data);
  });
  return {
    async declarationsOf(modelId) {
      return (isId(modelId) ? await known.find(modelId) : null) ?? declarationsOf(null);
    },
    invalidate({ store, id }) {
      if (store === 'models') known.invalidate(id);
    },
    invalidateAll: known.invalidateAll,
  };
}
