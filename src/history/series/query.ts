/** Checks the query parameters of a series. Pure. */

import { explainSeconds, parseDuration } from '../../core/duration.js';
import { badRequest, tooLarge } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import { isPath, splitList, splitQuoted } from '../../core/list.js';
import { findZone, type Zone } from '../../core/zone.js';
import { type Every, parseEvery } from './calendar.js';
import { COUNTER_BITS } from './counter.js';
import { FUNCTION_NAMES, parseFunction, type SeriesFunction } from './functions.js';
import { type NamePattern, parseNamePattern } from './name-pattern.js';

/** The raw parameters; null if absent. */
export interface SeriesTexts {
  readonly params: string | null;
  readonly points: number | null;
  readonly every: string | null;
  readonly tz: string | null;
  readonly fn: string | null;
  readonly gap: string | null;
  readonly wrap: string | null;
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

export interface SeriesQuery {
  readonly paths: readonly string[];
  /** Which further parameters are wanted. */
  readonly patterns: readonly NamePattern[];
  readonly functions: readonly SeriesFunction[];
  readonly fromMs: number | null;
  readonly toMs: number | null;
  /** The largest number of buckets, or the length of each. */
  readonly points: number;
  readonly every: Every | null;
  readonly zone: Zone;
  /** How long a value holds; null if not given. */
  readonly gapMs: number | null;
  /** The width of counters that continue at 0 after their largest value; null if not given. */
  readonly counterBits: number | null;
}

/** Throws a 400 that names the parameter. */
export function parseSeriesQuery(texts: SeriesTexts): SeriesQuery {
  const { fromMs, toMs, points, every } = texts;
  if (fromMs !== null && toMs !== null && fromMs > toMs) throw badRequest('from: is later than to');
  // HTML forms also send empty fields.
  if (points !== null && every) throw badRequest('points: cannot be combined with every');
  if (points !== null && (points < 1 || points > LIMITS.seriesPointsMax)) {
    throw badRequest(`points: expected 1 to ${LIMITS.seriesPointsMax}`);
  }
  return {
    fromMs,
    toMs,
    points: points ?? LIMITS.seriesPoints,
    ...parseParams(texts.params),
    functions: parseFunctions(texts.fn || 'minmax'),
    every: every ? parsedEvery(every) : null,
    zone: parseZone(texts.tz || 'UTC'),
    gapMs: texts.gap ? parseGap(texts.gap) : null,
    counterBits: texts.wrap ? parseWrap(texts.wrap) : null,
  };
}

/** A name in double quotes is no pattern. */
function parseParams(text: string | null): Pick<SeriesQuery, 'paths' | 'patterns'> {
  const isPattern = (item: string, isQuoted: boolean): boolean => !isQuoted && parseNamePattern(item) !== null;
  const items = splitQuoted(text ?? '').map((item) => ({
    ...item,
    text: item.isQuoted ? item.text : item.text.trim(),
  }));
  const all = checkPaths(items.map((item) => item.text));
  const patterns = new Set(items.flatMap((item) => (isPattern(item.text, item.isQuoted) ? [item.text] : [])));
  const named = new Set(items.flatMap((item) => (isPattern(item.text, item.isQuoted) ? [] : [item.text])));
  return {
    paths: all.filter((path) => named.has(path)),
    patterns: [...patterns].flatMap((pattern) => parseNamePattern(pattern) ?? []),
  };
}

function checkPaths(texts: readonly string[]): string[] {
  const paths = [...new Set(texts)].filter((path) => path !== '');
  if (paths.length === 0) throw badRequest('params: expected the names of parameters, separated by commas');
  if (paths.length > LIMITS.seriesParameters) throw badRequest(`params: more than ${LIMITS.seriesParameters} names`);
  const wrong = paths.find((path) => !isPath(path));
  if (wrong !== undefined) throw badRequest(`params: ${quoted(wrong)} is not a field name`);
  if (paths.includes('time')) throw badRequest('params: time is in the answer by itself');
  return paths;
}

function parseFunctions(text: string): SeriesFunction[] {
  const names = splitList(text);
  if (names.length > LIMITS.seriesFunctions) throw badRequest(`fn: more than ${LIMITS.seriesFunctions} functions`);
  const found = new Map<string, SeriesFunction>();
  for (const name of names) {
    const functions = parseFunction(name);
    if (functions === null) {
      throw badRequest(`fn: there is no function ${quoted(name)}, only ${FUNCTION_NAMES.join(', ')}`);
    }
    for (const one of functions) found.set(one.name, one);
  }
  return [...found.values()];
}

function parsedEvery(text: string): Every {
  const every = parseEvery(text);
  if (every === null) {
    throw badRequest(`every: ${quoted(text)} is no length, such as 15 min, 1 h, 1 day, 1 week, 3 months`);
  }
  return every;
}

/** The zone of `tz`. Throws a 400. */
export function parseZone(name: string): Zone {
  const zone = findZone(name);
  if (zone === null)
    throw badRequest(`tz: there is no time zone ${quoted(name)}; expected a name such as Europe/Berlin`);
  return zone;
}

function parseGap(text: string): number {
  const fault = explainSeconds(text);
  if (fault !== null) throw badRequest(`gap: ${fault}`);
  const gapMs = parseDuration(text);
  if (gapMs === null || gapMs < 1) throw badRequest(`gap: ${quoted(text)} is no duration, such as 90 s or 1 h`);
  return gapMs;
}

function parseWrap(text: string): number {
  const bits = COUNTER_BITS.get(text.trim());
  if (bits === undefined)
    throw badRequest(`wrap: expected ${[...COUNTER_BITS.keys()].join(' or ')}, the bits of a counter`);
  return bits;
}

const quoted = (text: string): string => JSON.stringify(text.slice(0, 64));

/** Throws 413 if the answer would contain too many numbers. */
export function checkCells(buckets: number, { functions }: SeriesQuery, columns: number): void {
  if (buckets * functions.length * columns <= LIMITS.seriesCells) return;
  throw tooLarge(
    `the answer would have more than ${LIMITS.seriesCells} numbers: ask for fewer points, parameters, functions or objects`,
  );
}

/** Divides the interval, both ends included, into at most `points` buckets of equal length. */
export function divideInterval(fromMs: number, toMs: number, points: number): { stepMs: number; count: number } {
  const lengthMs = toMs - fromMs + 1;
  const stepMs = Math.ceil(lengthMs / points);
  return { stepMs, count: Math.ceil(lengthMs / stepMs) };
}
