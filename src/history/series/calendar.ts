/** Buckets that follow the calendar of a time zone: where each begins. Pure. */

import { DAY_MS } from '../../core/units.js';
import type { Zone } from '../../core/zone.js';

/** The first Monday. */
const WEEK_ORIGIN_MS = 4 * DAY_MS;
const MONTHS_PER_YEAR = 12;
/** Longer buckets are of no use, and dates end: what begins later would have no time. */
const LONGEST_YEARS = 1_000;
const LONGEST_MONTHS = LONGEST_YEARS * MONTHS_PER_YEAR;
const LONGEST_MS = LONGEST_YEARS * 366 * DAY_MS;

/** How long a bucket is: so many milliseconds or, where months differ, so many months. */
export type Every =
  | { readonly kind: 'ms'; readonly stepMs: number; readonly originMs: number }
  | { readonly kind: 'months'; readonly months: number };

const UNITS: ReadonlyArray<[RegExp, { readonly ms: number } | { readonly months: number }]> = [
  [/^(?:ms|millis(?:econds?)?)$/i, { ms: 1 }],
  [/^(?:s|secs?|seconds?)$/i, { ms: 1_000 }],
  [/^(?:M|mo|mon|months?)$/, { months: 1 }],
  [/^(?:m|mins?|minutes?)$/i, { ms: 60_000 }],
  [/^(?:h|hrs?|hours?)$/i, { ms: 3_600_000 }],
  [/^(?:d|days?)$/i, { ms: DAY_MS }],
  [/^(?:w|weeks?)$/i, { ms: 7 * DAY_MS }],
  [/^months?$/i, { months: 1 }],
  [/^(?:q|quarters?)$/i, { months: 3 }],
  [/^(?:y|yrs?|years?)$/i, { months: MONTHS_PER_YEAR }],
];

/** `1 h`, `15m`, `1 d`, `1 week`, `3 months`, `day`; null for anything else, and for more than 1,000 years. */
export function parseEvery(text: string): Every | null {
  const [, digits, word = ''] = /^(\d{0,9})\s*([a-z]+)$/i.exec(text.trim()) ?? [];
  const unit = UNITS.find(([pattern]) => pattern.test(word))?.[1];
  const count = digits ? Number(digits) : 1;
  if (digits === undefined || unit === undefined || count === 0) return null;
  if ('months' in unit) {
    const months = count * unit.months;
    return months > LONGEST_MONTHS ? null : { kind: 'months', months };
  }
  const stepMs = count * unit.ms;
  if (stepMs > LONGEST_MS) return null;
  return { kind: 'ms', stepMs, originMs: unit.ms === 7 * DAY_MS ? WEEK_ORIGIN_MS : 0 };
}

/** Where buckets begin, from the one that holds `fromMs` on, without end. */
export function* bucketStarts(every: Every, zone: Zone, fromMs: number): Generator<number> {
  const starts =
    every.kind === 'months'
      ? monthStarts(every.months, zone, fromMs)
      : every.stepMs < DAY_MS
        ? shortStarts(every.stepMs, zone, fromMs)
        : dayStarts(every, zone, fromMs);
  let last = Number.NEGATIVE_INFINITY;
  for (const start of starts) {
    // A day that a zone has skipped begins with the next one.
    if (start > last) yield start;
    last = start;
  }
}

const remainder = (value: number, by: number): number => ((value % by) + by) % by;

function* monthStarts(months: number, zone: Zone, fromMs: number): Generator<number> {
  const local = new Date(fromMs + zone.offsetMs(fromMs));
  const month = (local.getUTCFullYear() - 1970) * MONTHS_PER_YEAR + local.getUTCMonth();
  for (let next = month - remainder(month, months); ; next += months) {
    const date = new Date(0);
    date.setUTCMonth(next);
    yield zone.toInstant(date.getTime());
  }
}

function* dayStarts({ stepMs, originMs }: Every & { kind: 'ms' }, zone: Zone, fromMs: number): Generator<number> {
  const local = fromMs + zone.offsetMs(fromMs);
  for (let next = local - remainder(local - originMs, stepMs); ; next += stepMs) yield zone.toInstant(next);
}

/** Where a clock is put back, the hour that comes twice has buckets of its own both times. */
function* shortStarts(stepMs: number, zone: Zone, fromMs: number): Generator<number> {
  for (let start = shortStart(stepMs, zone, fromMs); ; start = nextShortStart(stepMs, zone, start)) yield start;
}

/** The last instant up to this one at which the local clock shows a multiple of the step. */
function shortStart(stepMs: number, zone: Zone, atMs: number): number {
  const start = atMs - remainder(atMs + zone.offsetMs(atMs), stepMs);
  const changeMs = zone.findChange(start, atMs);
  if (changeMs === null) return start;
  // None of these instants lies between the change and `atMs`.
  const beforeMs = changeMs - 1;
  return beforeMs - remainder(beforeMs + zone.offsetMs(beforeMs), stepMs);
}

function nextShortStart(stepMs: number, zone: Zone, startMs: number): number {
  const next = startMs + stepMs - remainder(startMs + zone.offsetMs(startMs), stepMs);
  const changeMs = zone.findChange(startMs, next);
  return changeMs === null ? next : firstFrom(stepMs, zone, changeMs);
}

/** The first such instant from this one on. */
const firstFrom = (stepMs: number, zone: Zone, atMs: number): number =>
  atMs + remainder(-(atMs + zone.offsetMs(atMs)), stepMs);
