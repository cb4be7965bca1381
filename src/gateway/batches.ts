/** Many devices at once: dealt with in batches, and tried again ever later. */
import { LIMITS } from '../model/limits.js';

/** The items in batches of at most `size`, in their order. */
export function* inBatches<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let from = 0; from < items.length; from += size) yield items.slice(from, from + size);
}

/** How long to wait after so many failures in a row; never the same for two that failed together. */
export function backoffMs(failures: number): number {
  const longestMs = Math.min(LIMITS.presenceRetryMaxMs, LIMITS.presenceRenewMs * 2 ** Math.min(failures - 1, 10));
  return longestMs * (0.5 + Math.random() / 2);
}
