/** Splits long synchronous work into slices and yields to the event loop between them. */

import { LIMITS } from '../core/limits.js';
import { clock } from './clock.js';

/** Like `items.map(convert)`, without blocking the event loop. */
export async function mapInSlices<Item, Result>(
  items: readonly Item[],
  convert: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  let sinceMs = clock.steadyMs();
  for (let index = 0; index < items.length; index++) {
    results.push(convert(items[index] as Item, index));
    if (clock.steadyMs() - sinceMs < LIMITS.turnMs) continue;
    await clock.nextTurn();
    sinceMs = clock.steadyMs();
  }
  return results;
}
