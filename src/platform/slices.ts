/** Splits long synchronous work into slices and yields to the event loop between them. */

import { LIMITS } from '../core/limits.js';
import { clock } from './clock.js';

/** Like `items.map(convert)`, without blocking the event loop; `items` may also be made one by one. */
export async function mapInSlices<Item, Result>(
  items: Iterable<Item>,
  convert: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  let sinceMs = clock.steadyMs();
  for (const item of items) {
    results.push(convert(item, results.length));
    if (clock.steadyMs() - sinceMs < LIMITS.turnMs) continue;
    await clock.nextTurn();
    sinceMs = clock.steadyMs();
  }
  return results;
}
