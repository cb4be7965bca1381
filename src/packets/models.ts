/** Caches the declarations of models by `_id`: every packet needs them. */
import { ObjectId } from 'mongodb';
import type { Change } from '../core/change.js';
import { parseTimeAhead } from '../core/duration.js';
import { isId } from '../core/entity.js';
import { parseFormulas } from '../core/formula.js';
import type { JsonObject } from '../core/json.js';
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

/** A parameter that its formula could not calculate. */
export interface FailedFormula {
  readonly modelId: string;
  /** Of the model. */
  readonly ownerId: string;
  readonly parameter: string;
  readonly reason: string;
}

export function createModelFinder(
  database: Database,
  isLive: () => boolean,
  onFailed: (failed: FailedFormula) => void,
): ModelFinder {
  const known = createReadThroughCache(LIMITS.cachedModels, isLive, async (modelId) => {
    const named = { _id: new ObjectId(modelId) };
    const model = await mapDriverErrors(() => database.db.collection('models').findOne(named, COMMITTED_READ));
    // Those that are stored and cannot be parsed are left out.
    const formulas = parseFormulas(model?.data, () => undefined);
    const common = { modelId, ownerId: String(model?.owner) };
    const fail = (parameter: string, reason: string): void => onFailed({ ...common, parameter, reason });
    const calculate = formulas && ((parameters: JsonObject) => formulas.calculate(parameters, fail));
    return declarationsOf(model?.data, aheadMsOf(database, model?.timeAhead), calculate);
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
