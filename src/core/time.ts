/** Parses times and durations of clients and operators to milliseconds. */
import { LIMITS } from './limits.js';
import { DAY_MS, SECOND_MS } from './units.js';

const MAX_TIME_MS = 8.64e15;
const ISO = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(Z|[+ -]\d{2}:?\d{2})?)?$/i;
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

/** Whether a value is a time that JavaScript and BSON can represent: whole milliseconds since the epoch. */
export function isTimeMs(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && Math.abs(value) <= MAX_TIME_MS;
}

/**
 * Parses milliseconds since the epoch, or ISO 8601 from the day down to fractions of a second, UTC by default. A space counts as
 * `+`, because form decoding replaces one by the other. Null for any other text.
 */
export function parseTime(text: string): number | null {
  if (/^-?\d{1,16}$/.test(text)) {
    const timeMs = Number(text);
    return isTimeMs(timeMs) ? timeMs : null;
  }
  const match = ISO.exec(text);
  if (!match) return null;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const millisecond = Math.floor(Number(`0.${match[7] ?? 0}`) * 1_000);
  if (month < 1 || month > 12 || day < 1 || hour > 24 || minute > 59 || second > 59) return null;
  if (hour === 24 && (minute > 0 || second > 0)) return null;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCDate() !== day) return null;
  const localMs = date.getTime() + hour * 3_600_000 + minute * 60_000 + second * 1_000 + millisecond;
  const offsetMs = parseUtcOffset(match[8]);
  return offsetMs === null ? null : localMs - offsetMs;
}

function parseUtcOffset(zone: string | undefined): number | null {
  if (zone === undefined || zone.toUpperCase() === 'Z') return 0;
  const sign = zone[0] === '-' ? -1 : 1;
  const digits = zone.slice(1).replace(':', '');
  const hours = Number(digits.slice(0, 2));
  const minutes = Number(digits.slice(2));
  return hours > 23 || minutes > 59 ? null : sign * (hours * 3_600_000 + minutes * 60_000);
}

/** Parses a duration to ms: `3s`, `30m`, `12h`, `90 days`, `2w`, or plain milliseconds. Null for any other value. */
export function parseDuration(value: unknown): number | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null;
  const match = /^(\d{1,15}(?:\.\d{1,6})?)\s*([a-z]*)$/i.exec(String(value).trim());
  if (!match) return null;
  const word = (match[2] ?? '').toLowerCase();
  const unit = word === '' ? 'ms' : UNIT_NAMES.find(([pattern]) => pattern.test(word))?.[1];
  if (unit === undefined) return null;
  const durationMs = Math.round(Number(match[1]) * (UNITS_MS[unit] ?? Number.NaN));
  return Number.isSafeInteger(durationMs) ? durationMs : null;
}

/** What a token's lifetime is, for messages. */
export const TOKEN_LIFETIME = `a duration such as "90 days", or milliseconds; 1 second to ${LIMITS.tokenLifetimeMaxMs / DAY_MS} days`;

/** Whether the value is a duration that a token may be valid for. */
export function isTokenLifetime(value: unknown): boolean {
  const ms = parseDuration(value);
  return ms !== null && ms >= SECOND_MS && ms <= LIMITS.tokenLifetimeMaxMs;
}
