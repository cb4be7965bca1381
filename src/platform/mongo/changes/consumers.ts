/** Passes changes to isolated consumers: the failure of one does not keep the change from the others. */

import type { Change } from '../../../core/change.js';
import { toApiError } from '../../../core/errors.js';

export type ChangeConsumer = (change: Change) => void | Promise<void>;

/**
 * Calls the consumers in order. Throws if one failed, preferring an error of the database. When the same change is passed again,
 * only the consumers that failed are called.
 */
export function createChangeConsumers(consumers: readonly ChangeConsumer[]): (change: Change) => Promise<void> {
  // Of the change that failed; null while none did, so that positions of all others are not computed.
  let failedAt: string | null = null;
  let left = consumers;
  return async (change) => {
    if (failedAt === null || change.position !== failedAt) left = consumers;
    const failed: [consumer: ChangeConsumer, error: unknown][] = [];
    for (const consume of left) {
      try {
        const consumed = consume(change);
        if (consumed !== undefined) await consumed;
      } catch (error) {
        failed.push([consume, error]);
      }
    }
    left = failed.map(([consume]) => consume);
    const [first] = failed;
    failedAt = first === undefined ? null : change.position;
    if (first === undefined) return;
    throw (failed.find(([, error]) => toApiError(error).status === 503) ?? first)[1];
  };
}
