/** Counts what one fault may cause for very many at once, so that the log says it once a minute, with how often it came. */

import { MINUTE_MS } from '../core/units.js';
import { clock } from './clock.js';

/** Counts one; returns how many came since the last report if another one is due, else null. */
export type MinuteCount = () => number | null;

export function createMinuteCount(): MinuteCount {
  let count = 0;
  let reportedMs = Number.NEGATIVE_INFINITY;
  return () => {
    count++;
    const nowMs = clock.steadyMs();
    if (nowMs - reportedMs < MINUTE_MS) return null;
    const due = count;
    reportedMs = nowMs;
    count = 0;
    return due;
  };
}
