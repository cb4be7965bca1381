/** Says in the header of an answer which interval was taken for a request without one. */
import type { Response } from 'express';
import type { Bounds, Interval } from '../packets/default-interval.js';

/** An interval of ISO 8601, both ends included. */
const INTERVAL_HEADER = 'X-Interval';

export function tellInterval(res: Response, asked: Bounds, taken: Interval | null): void {
  if (taken === null || (asked.fromMs !== null && asked.toMs !== null)) return;
  res.setHeader(INTERVAL_HEADER, [taken.fromMs, taken.toMs].map((ms) => new Date(ms).toISOString()).join('/'));
}
