/** What is compared, as the address of the page says it. Pure. */
import { parseQueryTime } from '../../core/time.js';
import type { IntervalMs } from '../objects/days.js';

export const MOST_SERIES = 8;
/** As many as a chart has room for. */
export const POINTS = 600;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const USUAL_HOURS = 24;
const MOST_HOURS = 366 * 24;
/** An interval that ended so long ago was chosen to end now. */
const NOW_MS = 2 * MINUTE_MS;

type Query = Readonly<Record<string, string>>;

/** A number of an object: `object` is its `_id` or `id`. */
export interface SeriesKey {
  readonly object: string;
  readonly path: string;
}

export interface Compared {
  readonly series: readonly SeriesKey[];
  /** Each in a chart of its own. */
  readonly isBelow: boolean;
  /** What the buttons chose. */
  readonly whole: IntervalMs;
  /** The part of it, or beside it, that is shown. */
  readonly shown: IntervalMs;
  readonly isZoomed: boolean;
}

export function comparedOf(query: Query, nowMs: number): Compared {
  const whole = wholeOf(query, nowMs);
  const [from, to] = (query.zoom ?? '').split(',');
  const zoom = intervalOf(from, to);
  return {
    series: seriesOf(query.series),
    isBelow: query.as === 'below',
    whole,
    shown: zoom ?? whole,
    isZoomed: zoom !== null,
  };
}

function wholeOf({ from, to, hours }: Query, nowMs: number): IntervalMs {
  const asked = Number(hours);
  const isAsked = Number.isInteger(asked) && asked > 0 && asked <= MOST_HOURS;
  return intervalOf(from, to) ?? endingNow(isAsked ? asked : USUAL_HOURS, nowMs);
}

function intervalOf(from = '', to = ''): IntervalMs | null {
  const fromMs = parseQueryTime(from, 'first');
  const toMs = parseQueryTime(to, 'last');
  return fromMs !== null && toMs !== null && fromMs < toMs ? { fromMs, toMs } : null;
}

/** It moves on by a point at a time, and no sooner than after a minute: packets in between are added to what was read. */
function endingNow(hours: number, nowMs: number): IntervalMs {
  const lengthMs = hours * HOUR_MS;
  const stepMs = Math.max(MINUTE_MS, lengthMs / POINTS);
  const toMs = Math.ceil(nowMs / stepMs) * stepMs;
  return { fromMs: toMs - lengthMs, toMs };
}

/** Names of objects and of parameters may contain commas and colons. */
export const textOfSeries = (series: readonly SeriesKey[]): string => series.map((one) => nameOfSeries(one)).join();

/** One of them in the address, and its key everywhere. */
export const nameOfSeries = ({ object, path }: SeriesKey): string =>
  `${encodeURIComponent(object)}:${encodeURIComponent(path)}`;

function seriesOf(text = ''): SeriesKey[] {
  const found = new Map<string, SeriesKey>();
  for (const one of text.split(',')) {
    const [object, path] = one.split(':').map(decoded);
    if (object && path) found.set(nameOfSeries({ object, path }), { object, path });
  }
  return [...found.values()].slice(0, MOST_SERIES);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}

/** What is undefined is left out. */
const toQuery = (fields: Readonly<Record<string, string | undefined>>): string =>
  new URLSearchParams(
    Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined),
  ).toString();

export const withSeries = (query: Query, series: readonly SeriesKey[]): string =>
  toQuery({ ...query, series: series.length === 0 ? undefined : textOfSeries(series) });

export const withLayout = (query: Query, isBelow: boolean): string =>
  toQuery({ ...query, as: isBelow ? 'below' : undefined });

/** Null shows the whole interval again. */
export const withZoom = (query: Query, interval: IntervalMs | null): string =>
  toQuery({ ...query, zoom: interval === null ? undefined : [interval.fromMs, interval.toMs].map(textOf).join() });

/** Of whole hours that end now, the length: the interval goes on. */
export function withWhole(query: Query, interval: IntervalMs, nowMs: number): string {
  const { fromMs, toMs } = interval;
  const hours = (toMs - fromMs) / HOUR_MS;
  const isEndingNow = Number.isInteger(hours) && hours <= MOST_HOURS && toMs <= nowMs && toMs > nowMs - NOW_MS;
  const bounds = isEndingNow ? { hours: String(hours), from: undefined, to: undefined } : boundsOf(interval);
  return toQuery({ ...query, hours: undefined, ...bounds, zoom: undefined });
}

export const boundsOf = ({ fromMs, toMs }: IntervalMs): { readonly from: string; readonly to: string } => ({
  from: textOf(fromMs),
  to: textOf(toMs),
});

/** Numbers that could be something else are no times in an address. */
const textOf = (ms: number): string => {
  const whole = Math.round(ms);
  return parseQueryTime(String(whole), 'first') === whole ? String(whole) : new Date(whole).toISOString();
};

/** A part of an interval around its middle; more than 1 is longer than it. */
export function scaled({ fromMs, toMs }: IntervalMs, factor: number): IntervalMs {
  const middleMs = (fromMs + toMs) / 2;
  const halfMs = Math.max(1_000, ((toMs - fromMs) / 2) * factor);
  return { fromMs: Math.round(middleMs - halfMs), toMs: Math.round(middleMs + halfMs) };
}

/** By a part of its length. */
export function shifted({ fromMs, toMs }: IntervalMs, part: number): IntervalMs {
  const byMs = Math.round((toMs - fromMs) * part);
  return { fromMs: fromMs + byMs, toMs: toMs + byMs };
}
