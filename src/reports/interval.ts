/** The interval of a report, and the days, weeks or months that it is divided into, by the clock of a time zone. */
import { badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { DAY_MS } from '../core/units.js';
import type { Zone } from '../core/zone.js';
import { bucketStarts, parseEvery } from '../history/series/calendar.js';
import { parseZone } from '../history/series/query.js';
import { parseInterval, parseText, type Query } from '../platform/http/query-params.js';

export interface ReportInterval {
  readonly fromMs: number;
  /** Included. */
  readonly toMs: number;
  readonly zone: Zone;
  readonly zoneName: string;
  /** Where each part begins; the first one at `fromMs`. One part without `every`. */
  readonly starts: readonly number[];
}

/** Throws a 400. Without `to` an interval ends now. */
export function parseReportInterval(query: Query, nowMs: number): ReportInterval {
  const zoneName = parseText(query, 'tz') || 'UTC';
  const zone = parseZone(zoneName);
  const { fromMs, toMs: to } = parseInterval(query, zone);
  if (fromMs === null) throw badRequest('from: is required');
  const toMs = to ?? Math.max(fromMs, nowMs);
  if (fromMs > toMs) throw badRequest('from: is later than to');
  if (toMs - fromMs > LIMITS.reportIntervalMs) {
    throw badRequest(`from: a report covers at most ${LIMITS.reportIntervalMs / DAY_MS} days`);
  }
  return { fromMs, toMs, zone, zoneName, starts: toParts(parseText(query, 'every'), { fromMs, toMs, zone }) };
}

function toParts(text: string | null, { fromMs, toMs, zone }: { fromMs: number; toMs: number; zone: Zone }): number[] {
  if (text === null || text === '') return [fromMs];
  const every = parseEvery(text);
  if (every === null || (every.kind === 'ms' && every.stepMs < DAY_MS)) {
    throw badRequest('every: expected days or longer, such as 1 day, 1 week or 1 month');
  }
  const starts: number[] = [];
  for (const start of bucketStarts(every, zone, fromMs)) {
    if (start > toMs) break;
    if (starts.push(Math.max(start, fromMs)) > LIMITS.reportBuckets) {
      throw badRequest(`every: the interval has more than ${LIMITS.reportBuckets} of them`);
    }
  }
  return starts;
}

/** The part that a time belongs to. */
export function partAt({ starts }: Pick<ReportInterval, 'starts'>, timeMs: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] as number) <= timeMs) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The last millisecond of a part. */
export const partEnd = ({ starts, toMs }: ReportInterval, part: number): number => {
  const next = starts[part + 1];
  return next === undefined ? toMs : next - 1;
};

/** Calls `add` for each part that a span meets, with the next part, which is null for the last one. */
export function divide(
  interval: Pick<ReportInterval, 'starts'>,
  span: { readonly fromMs: number; readonly toMs: number },
  add: (part: number, ms: number, next: number | null) => void,
): void {
  let sinceMs = span.fromMs;
  for (let part = partAt(interval, span.fromMs); ; part++) {
    const nextMs = interval.starts[part + 1] ?? Infinity;
    const isLast = nextMs >= span.toMs;
    add(part, (isLast ? span.toMs : nextMs) - sinceMs, isLast ? null : part + 1);
    if (isLast) return;
    sinceMs = nextMs;
  }
}

/** Whether it consists of whole days of its zone. */
export const isOfDays = ({ fromMs, toMs, zone }: Pick<ReportInterval, 'fromMs' | 'toMs' | 'zone'>): boolean =>
  [fromMs, toMs + 1].every((ms) => (ms + zone.offsetMs(ms)) % DAY_MS === 0);

/** A time as its zone shows it, with the offset: `2026-03-29T03:00:00+02:00`; `Z` in UTC. */
export function toZonedText(timeMs: number, zone: Zone): string {
  const offsetMs = zone.offsetMs(timeMs);
  const local = new Date(timeMs + offsetMs).toISOString().slice(0, -1);
  const text = local.endsWith('.000') ? local.slice(0, -4) : local;
  if (offsetMs === 0) return `${text}Z`;
  const minutes = Math.round(Math.abs(offsetMs) / 60_000);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${text}${offsetMs < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}
