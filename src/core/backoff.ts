/** Exponential backoff. */

/**
 * The wait after a number of failures in a row: `firstMs`, then twice as long each time, up to `maxMs`. With jitter down to half of
 * it, so that those who failed together do not retry together; `random` is between 0 and 1.
 */
export function backoffMs(failures: number, firstMs: number, maxMs: number, random: number): number {
  return Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 20)) * (0.5 + random / 2);
}
