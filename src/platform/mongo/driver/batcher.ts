/** Batches operations that are requested within one iteration of the event loop. */

import { LIMITS } from '../../../core/limits.js';
import { clock } from '../../clock.js';
import { isTransientError } from './errors.js';

/**
 * Runs `items` together with all items of the same `name` from this iteration. `run` starts after the last item is added, so no
 * caller gets a result older than its call. All callers share the result and every transient error. After any other error, which
 * one caller's items may have caused, each caller's items run separately.
 */
export type Batch = <Item, Result>(
  name: string,
  items: readonly Item[],
  run: (items: Item[]) => Promise<Result>,
) => Promise<Result>;

interface OpenBatch {
  readonly items: unknown[];
  readonly result: Promise<unknown>;
}

export function createBatcher(): Batch {
  let batches = new Map<string, OpenBatch>();
  const open = (name: string, run: (items: unknown[]) => Promise<unknown>): OpenBatch => {
    const items: unknown[] = [];
    const current = batches;
    const result = new Promise((resolve) => {
      clock.setImmediate(() => {
        // Each iteration has its own map, instead of deleting entries: docs/development.md says why.
        if (batches === current) batches = new Map();
        // A synchronous exception of `run` rejects the promise too.
        resolve(Promise.resolve(items).then(run));
      });
    });
    const batch = { items, result };
    batches.set(name, batch);
    return batch;
  };
  return <Item, Result>(name: string, items: readonly Item[], run: (items: Item[]) => Promise<Result>) => {
    const present = batches.get(name);
    const isFull = present === undefined || present.items.length >= LIMITS.itemsPerTurn;
    const batch = isFull ? open(name, run as (items: unknown[]) => Promise<unknown>) : present;
    batch.items.push(...items);
    return (batch.result as Promise<Result>).catch((error: unknown) => {
      if (batch.items.length === items.length || isTransientError(error)) throw error;
      return run([...items]);
    });
  };
}
