/** Which events of the past a webhook is to get again. Pure. */
import { badRequest } from '../core/errors.js';
import type { Json, JsonObject } from '../core/json.js';
import { isPosition } from '../core/position.js';
import { type Edge, explainQueryTime, parseQueryTime } from '../core/time.js';

/** All events after a position, or the packets of an interval, both ends included. */
export type ReplayRange =
  | { readonly since: string; readonly fromMs: null; readonly toMs: null }
  | { readonly since: null; readonly fromMs: number; readonly toMs: number };

/** Parses `{since}` or `{from, to}`; without `to` until now. Throws a 400 that names the field. */
export function parseReplay({ since = null, from = null, to = null }: JsonObject, nowMs: number): ReplayRange {
  if (since !== null) {
    if (from !== null || to !== null) throw badRequest('since: cannot be combined with from and to');
    if (!isPosition(since)) throw badRequest('since: expected the position of an event');
    return { since, fromMs: null, toMs: null };
  }
  if (from === null) throw badRequest('from: expected a time; or since, the position of an event');
  const fromMs = timeIn('from', from, 'first');
  const toMs = to === null ? nowMs : timeIn('to', to, 'last');
  if (fromMs > toMs) throw badRequest('from: expected a time before to');
  return { since: null, fromMs, toMs };
}

function timeIn(name: string, value: Json, edge: Edge): number {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  const timeMs = parseQueryTime(text, edge);
  if (timeMs !== null) return timeMs;
  throw badRequest(`${name}: ${explainQueryTime(text)}`);
}

/** The range as an answer contains it. */
export const toRangeFields = ({
  since,
  fromMs,
  toMs,
}: ReplayRange): { since: string } | { from: number; to: number } =>
  since === null ? { from: fromMs, to: toMs } : { since };

/** The range as security events contain it. */
export const toRangeTexts = (range: ReplayRange): string[] =>
  range.since === null
    ? [`from=${new Date(range.fromMs).toISOString()}`, `to=${new Date(range.toMs).toISOString()}`]
    : [`since=${range.since}`];
