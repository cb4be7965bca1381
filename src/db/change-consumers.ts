/** Passes changes on to several consumers, so that the failure of one keeps no change from the others. */
import { toApiError } from '../errors.js';
import type { Change } from '../model/change.js';

export type ChangeConsumer = (change: Change) => void | Promise<void>;

/**
 * Calls the consumers in their order. Throws when one failed, a fault of the database first: who passes the same change again
 * reaches only those that have not had it.
 */
export function createChangeConsumers(consumers: readonly ChangeConsumer[]): (change: Change) => Promise<void> {
  let position = '';
  let left = consumers;
  return async (change) => {
    if (change.position !== position) left = consumers;
    position = change.position;
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
    if (first === undefined) return;
    throw (failed.find(([, error]) => toApiError(error).status === 503) ?? first)[1];
  };
}
