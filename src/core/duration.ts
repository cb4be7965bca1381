/** Parses durations of clients and operators to milliseconds. */
import { LIMITS } from './limits.js';
import { toDateText } from './time.js';
import { DAY_MS, MINUTE_MS, SECOND_MS } from './units.js';

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const UNIT_NAMES: ReadonlyArray<[RegExp, string]> = [
  [/^(ms|millis(econds?)?)$/, 'ms'],
  [/^(s|secs?|seconds?)$/, 's'],
  [/^(m|mins?|minutes?)$/, 'm'],
  [/^(h|hrs?|hours?)$/, 'h'],
  [/^(d|days?)$/, 'd'],
  [/^(w|weeks?)$/, 'w'],
];

/** Plain milliseconds with more digits are a time: that many would be decades. */
const MS_DIGITS = 12;

/** Parses a duration to ms: `3s`, `30m`, `12h`, `90 days`, `2w`, or plain milliseconds. Null for any other value. */
export function parseDuration(value: unknown): number | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  const match = /^(\d{1,15}(?:\.\d{1,6})?)\s*([a-z]*)$/i.exec(String(value).trim());
  if (!match || toDateText(match[0]) !== null) return null;
  const word = (match[2] ?? '').toLowerCase();
  const unit = word === '' ? 'ms' : UNIT_NAMES.find(([pattern]) => pattern.test(word))?.[1];
  if (unit === undefined || (word === '' && Number(match[1]) >= 10 ** MS_DIGITS)) return null;
  const durationMs = Math.round(Number(match[1]) * (UNITS_MS[unit] ?? Number.NaN));
  return Number.isSafeInteger(durationMs) ? durationMs : null;
}

/**
 * Why a request may not have this bare number as a duration: nobody means so many milliseconds. As seconds it is whole half hours, and as
 * milliseconds no whole seconds (3600, 86400), or it is whole days, and no whole minutes (2592000). Null for any other value.
 */
export function explainSeconds(value: unknown): string | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  if (!/^[1-9]\d{3,9}$/.test(String(value).trim())) return null;
  const count = Number(value);
  const isHours = count % HALF_HOUR_S === 0 && count % SECOND_MS !== 0;
  if (!isHours && !(count % DAY_S === 0 && count % MINUTE_MS !== 0)) return null;
  const [size, unit] = SECONDS.find(([one]) => count % one === 0) ?? [1, 's'];
  return `${count} looks like seconds: write "${count / size} ${unit}", or ${count * SECOND_MS} for milliseconds`;
}

const DAY_S = 86_400;
const HALF_HOUR_S = 1_800;
const SECONDS: ReadonlyArray<[size: number, unit: string]> = [
  [DAY_S, 'd'],
  [3_600, 'h'],
  [60, 'min'],
];

/** What a token's lifetime is, for messages. */
const TOKEN_LIFETIME = `a duration such as "90 days", or milliseconds; 1 second to ${LIMITS.tokenLifetimeMaxMs / DAY_MS} days`;

/** Why a token may not be valid for this value; null if it is such a duration. */
export function explainTokenLifetime(value: unknown): string | null {
  const ms = parseDuration(value);
  const isLifetime = ms !== null && ms >= SECOND_MS && ms <= LIMITS.tokenLifetimeMaxMs;
  return explainSeconds(value) ?? (isLifetime ? null : `expected ${TOKEN_LIFETIME}`);
}

/** How far a model lets packets be ahead of the clock of the service, for messages. */
const TIME_AHEAD = `a duration such as "1 day", or milliseconds; at most ${LIMITS.packetAheadMaxMs / DAY_MS} days`;

/** Why a model may not have this value; null if it may. */
export const explainTimeAhead = (value: unknown): string | null =>
  explainSeconds(value) ?? (parseTimeAhead(value) === null ? `expected ${TIME_AHEAD}` : null);

/** Parses it to ms; null when it is missing or invalid. */
export function parseTimeAhead(value: unknown): number | null {
  const ms = parseDuration(value);
  return ms !== null && ms <= LIMITS.packetAheadMaxMs ? ms : null;
}
