/** Much work that is done in slices, with turns of the event loop for others between them. */
import { setImmediate as turn } from 'node:timers/promises';
import { LIMITS } from '../model/limits.js';

/** The same as `items.map(convert)`, later. */
export async function mapInSlices<Item, Result>(
  items: readonly Item[],
  convert: (item: Item, at: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  let sinceMs = performance.now();
  for (let at = 0; at < items.length; at++) {
    results.push(convert(items[at] as Item, at));
    if (performance.now() - sinceMs < LIMITS.turnMs) continue;
    await turn();
    sinceMs = performance.now();
  }
  return results;
}
