/**
 * Parses times to milliseconds (docs/reference/times.md). There are two rules: devices send numbers in several units; who asks or
 * removes gives milliseconds. Digits that could be something else are no time.
 */
import { EARLIEST_MS, isDayText, parseTimeText } from './time-text.js';
import { DAY_MS } from './units.js';
import type { Zone } from './zone.js';

const DIGITS = /^(0|[1-9]\d*)(?:\.(\d+))?$/;
/** Devices may also be before 1970. */
const DEVICE_DIGITS = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?$/;
const DATE_DIGITS = /^((?:19|20)\d\d)(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?$/;
/**
 * How a date is written with 12 or 14 digits, whether or not it exists: 202611310000 has a day too many. As milliseconds these are
 * of 1976, or centuries ahead: a removal up to there would take everything.
 */
const DATE_SHAPE = /^(?:19|20)\d\d[0-3]\d[0-3]\d[0-2]\d[0-6]\d(?:[0-6]\d)?$/;
/** A year of two digits, as trackers write it: 261123100000. As milliseconds these are of 1973 to 2001. */
const SHORT_DATE_DIGITS = /^\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])[0-5]\d[0-5]\d$/;
/** By how many digits the numbers of devices are shifted to milliseconds, by the count of their digits: s, ms, µs, ns. */
const DEVICE_SHIFTS: Readonly<Record<number, number>> = { 9: 3, 10: 3, 11: 0, 12: 0, 13: 0, 16: -3, 19: -6 };
/** A number with fewer digits is before 2000 in every unit: of a clock that was reset. */
const RESET_DIGITS = 8;
/** 14 digits of milliseconds reach back to the year 1. */
const NEGATIVE_DIGITS = 14;
const NUMBER_UNITS: Readonly<Record<number, string>> = {
  9: 'seconds',
  10: 'seconds',
  16: 'microseconds',
  19: 'nanoseconds',
};

/** Which moment of a day a date without a clock time stands for: `from` means the first, `to` the last. */
export type Edge = 'first' | 'last';

/**
 * Parses the time of a packet: a number, or digits, in seconds, milliseconds, microseconds or nanoseconds, told apart by the count
 * of digits; or a time as text. Rounds down to milliseconds. Null for anything that is not plainly a time.
 */
export function parseDeviceTime(value: unknown): number | null {
  if (typeof value === 'number') {
    const isPlainMs = value >= 1e12 && value < 1e13 && Number.isInteger(value);
    return isPlainMs ? value : parseDeviceDigits(DEVICE_DIGITS.exec(String(value)));
  }
  if (typeof value !== 'string') return null;
  const text = value.trim();
  const digits = DEVICE_DIGITS.exec(text);
  return digits === null ? parseTimeText(text) : parseDeviceDigits(digits);
}

/** Shifts digits instead of calculating: a double rounds fractions of seconds. */
function parseDeviceDigits(digits: RegExpExecArray | null): number | null {
  if (digits === null) return null;
  const [, sign, whole = '', fraction = ''] = digits;
  if (sign === '-') return parseNegative(whole, fraction);
  if (toDateText(whole) !== null) return null;
  if (whole.length <= RESET_DIGITS) return Number(whole);
  const shift = DEVICE_SHIFTS[whole.length];
  if (shift === undefined) return null;
  return Number(shift < 0 ? whole.slice(0, shift) : whole + fraction.padEnd(shift, '0').slice(0, shift));
}

/**
 * A time before 1970, of a clock that was reset; in the same units. No times are those of the year 1, also in seconds, and numbers
 * of more digits, with which programs mark a missing time.
 */
function parseNegative(whole: string, fraction: string): number | null {
  if (whole.length > NEGATIVE_DIGITS || (whole.length === 11 && isInYearOne(Number(whole)))) return null;
  const shift = whole.length <= RESET_DIGITS ? 0 : (DEVICE_SHIFTS[whole.length] ?? 0);
  const shifted = whole + fraction.slice(0, shift).padEnd(shift, '0');
  const timeMs = Math.floor(0 - Number(`${shifted}.${fraction.slice(shift)}`));
  return timeMs < EARLIEST_MS ? null : timeMs;
}

/** Whether so many seconds before 1970 are 0001-01-01, in any zone. */
const isInYearOne = (seconds: number): boolean => Math.abs(seconds * 1_000 + EARLIEST_MS) <= 2 * DAY_MS;

/** What is wrong with the time of a packet, for messages. */
export function explainDeviceTime(value: unknown): string {
  const isText = typeof value === 'string' || typeof value === 'number';
  const date = isText ? toDateText(String(value).trim()) : null;
  if (date !== null) return `these digits look like a date: write "${date}"`;
  return 'expected a time, such as 1795500000000 in ms, 1795500000 in s, or "2026-11-24T06:00:00Z"';
}

/**
 * Parses the time of a query: milliseconds since the epoch with 12 to 14 digits, 0 to 999 for the beginning, or a time as text. A
 * day means its first or its last millisecond. Null for anything that is not plainly a time.
 */
export function parseQueryTime(given: string, edge: Edge): number | null {
  const text = given.trim();
  const [, whole] = DIGITS.exec(text) ?? [];
  if (whole !== undefined) return isQueryMs(whole) ? Number(whole) : null;
  const timeMs = parseTimeText(text);
  return timeMs !== null && edge === 'last' && isDayText(text) ? timeMs + DAY_MS - 1 : timeMs;
}

/** The same, but what is written without a zone is a time of this zone. A day has the length that it has there. */
export function parseZonedQueryTime(given: string, edge: Edge, zone: Zone): number | null {
  const text = given.trim();
  const timeMs = parseQueryTime(text, 'first');
  if (timeMs === null || DIGITS.test(text)) return timeMs;
  if (isDayText(text)) return edge === 'first' ? zone.toInstant(timeMs) : zone.toInstant(timeMs + DAY_MS) - 1;
  const isLocal = parseTimeText(`${text}Z`) !== null;
  return isLocal ? zone.toInstant(timeMs) : timeMs;
}

const isQueryMs = (whole: string): boolean =>
  whole.length <= 3 ||
  (whole.length >= 12 && whole.length <= 14 && !DATE_SHAPE.test(whole) && toShortDateText(whole) === null);

/** The date of this century that digits with a year of two digits stand for; null if they stand for none. */
const toShortDateText = (digits: string): string | null =>
  SHORT_DATE_DIGITS.test(digits) ? toDateText(`20${digits}`) : null;

/** What is wrong with the time of a query, for messages. */
export function explainQueryTime(given: string): string {
  const text = given.trim();
  const date =
    toDateText(/^(?:19|20)\d\d(?:\d\d)?$/.test(text) ? text.padEnd(6, '01').padEnd(8, '01') : text) ??
    toShortDateText(text);
  if (date !== null) return `these digits look like a date: write ${date}`;
  const digits = DIGITS.exec(text);
  const unit = NUMBER_UNITS[digits?.[1]?.length ?? 0];
  const timeMs = unit === undefined ? null : parseDeviceDigits(DEVICE_DIGITS.exec(text));
  if (timeMs !== null) {
    return `these look like ${unit}: write milliseconds, ${timeMs}, or ${new Date(timeMs).toISOString()}`;
  }
  return 'expected ms since the epoch (12 to 14 digits) or a time such as 2026-11-23 or 2026-11-23T10:00Z';
}

/** The date that digits such as 20261123 or 202611231000 stand for; null if they stand for none. */
export function toDateText(digits: string): string | null {
  const [, year, month, day, hour, minute, second] = DATE_DIGITS.exec(digits) ?? [];
  if (year === undefined) return null;
  const clock = [hour, minute, second].filter((part) => part !== undefined).join(':');
  const text = `${year}-${month}-${day}${clock === '' ? '' : `T${clock}`}`;
  return parseTimeText(text) === null ? null : text;
}
