/** Splits long synchronous work into slices and yields to the event loop between them. */
import { setImmediate as nextIteration } from 'node:timers/promises';
import { LIMITS } from '../core/limits.js';

/** Like `items.map(convert)`, without blocking the event loop. */
export async function mapInSlices<Item, Result>(
  items: readonly Item[],
  convert: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  let sinceMs = performance.now();
  for (let index = 0; index < items.length; index++) {
    results.push(convert(items[index] as Item, index));
    if (performance.now() - sinceMs < LIMITS.turnMs) continue;
    await nextIteration();
    sinceMs = performance.now();
  }
  return results;
}
