/** How long to wait before what failed is tried again. */
import { LIMITS } from '../model/limits.js';

/** How long to wait after so many failures in a row; never the same for two that failed together. */
export function backoffMs(failures: number): number {
  const longestMs = Math.min(LIMITS.presenceRetryMaxMs, LIMITS.presenceRenewMs * 2 ** Math.min(failures - 1, 10));
  return longestMs * (0.5 + Math.random() / 2);
}
