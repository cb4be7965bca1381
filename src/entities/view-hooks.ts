/** Saved views of the console: how many one user may have. */
import { ObjectId } from 'mongodb';
import { badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import type { HookDeps, StoreHooks } from './hooks.js';

export function viewHooks({ database }: Pick<HookDeps, 'database'>): StoreHooks {
  return {
    async prepareNew({ userId }, fields) {
      const limit = LIMITS.viewsPerUser;
      const own = { owner: new ObjectId(userId) };
      const count = await mapDriverErrors(() => database.db.collection('views').countDocuments(own, { limit }));
      if (count >= limit) throw badRequest(`you have ${limit} views already`);
      return fields;
    },
  };
}
