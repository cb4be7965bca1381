/** What models declare, found by the model's `_id`: asked for with every packet. */
import { ObjectId } from 'mongodb';
import type { Change } from '../model/change.js';
import { isId } from '../model/entity.js';
import { LIMITS } from '../model/limits.js';
import { type Declarations, declarationsOf } from '../model/model.js';
import type { Database } from './connect.js';
import { translated } from './documents.js';
import { createKnown } from './known.js';

export interface ModelFinder {
  /** A model that is gone declares nothing. */
  declarationsOf(modelId: string): Promise<Declarations>;
  forget(change: Pick<Change, 'store' | 'id'>): void;
  forgetAll(): void;
}

export function createModelFinder(database: Database, isLive: () => boolean): ModelFinder {
  const known = createKnown(LIMITS.cachedModels, isLive, async (modelId) => {
    const model = await translated(() => database.db.collection('models').findOne({ _id: new ObjectId(modelId) }));
    return declarationsOf(model?.data);
  });
  return {
    async declarationsOf(modelId) {
      return (isId(modelId) ? await known.find(modelId) : null) ?? declarationsOf(null);
    },
    forget({ store, id }) {
      if (store === 'models') known.forget(id);
    },
    forgetAll: known.forgetAll,
  };
}
