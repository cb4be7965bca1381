/** When a message that failed is sent again, and when it is given up instead. Pure. */
import { LIMITS } from '../core/limits.js';
import { MINUTE_MS, SECOND_MS } from '../core/units.js';

/** After these, every hour. */
const RETRY_DELAYS_MS: readonly number[] = [
  SECOND_MS,
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
];
const HOURLY_MS = 60 * MINUTE_MS;
const SPREAD = 0.2;

/** Whether a message is given up when it fails. `upkeep.ts` does the same to those that are not tried. */
export const isTooOld = ({ timeMs }: { timeMs: number }, nowMs: number): boolean =>
  nowMs - timeMs >= LIMITS.webhookLifetimeMs;

/** How long to wait after that many attempts, ms. `random` is in [0, 1). */
export function findRetryDelay(
  { attempts, retryAfterMs }: { attempts: number; retryAfterMs: number | null },
  random: number,
): number {
  const delayMs = (RETRY_DELAYS_MS[attempts - 1] ?? HOURLY_MS) * (1 + SPREAD * (2 * random - 1));
  return Math.round(Math.max(delayMs, retryAfterMs ?? 0));
}
