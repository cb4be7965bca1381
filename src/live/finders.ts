/** Look-ups for subscriptions, in a fair queue. */

import { findGroupIds } from '../accounts/group-moves.js';
import type { Scope } from '../core/access.js';
import { findObjectIds } from '../entities/object-ids.js';
import type { FairQueue } from '../platform/fair-queue.js';
import type { Database } from '../platform/mongo/driver/client.js';

export const createFinders = (database: Database, queue: FairQueue) => ({
  /** The `_id`s of the visible ones among these objects, which are named by `_id` or own id. */
  findObjects: (scope: Scope, keys: readonly string[]): Promise<string[]> =>
    queue.run(scope.userId, () => findObjectIds(database, scope, keys)),
  /** The `_id`s of the ones among these groups that are the scope's own group or below it. */
  findGroups: (scope: Scope, ids: readonly string[]): Promise<string[]> =>
    queue.run(scope.userId, () => findGroupIds(database, scope, ids)),
});
