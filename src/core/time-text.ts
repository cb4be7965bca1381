/** Parses times that are written as text with a date (docs/reference/times.md). Digits alone are none. Pure. */
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from './units.js';

const TEXT_CHARACTERS = 128;
/** .NET, Go and others write 0001-01-01 for "no time", which a zone may shift by a day. */
export const EARLIEST_MS = Date.parse('0001-01-02T00:00:00Z');

const CLOCK = String.raw`(\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?`;
// Form decoding makes a blank of a plus. ISO 8601 has a minus sign, for which a hyphen stands where there is none.
const ZONE = String.raw` *(Z|UTC?|GMT|(?:UTC|GMT)?[+\u2212-]\d\d(?::?\d\d)?(?: [A-Z]{3,5})?| \d\d(?::?\d\d)?)`;
/** RFC 9557: the name of the zone, and more in brackets, after an offset that says the same. */
const ZONE_NAME = String.raw`(?:\[!?[a-z][\w.~+/-]*(?:=[\w-]+)?\])*`;
const withClock = (date: string): RegExp =>
  new RegExp(String.raw`^${date}(?:(?:T| (?=\d\d:?\d\d))${CLOCK}(?:${ZONE}${ZONE_NAME})?)?$`, 'i');
/**
 * ISO 8601: the day of a month, of a year, of a week. Each has a year, a separator, and one or two numbers. With the year in front, a
 * date has one meaning whatever separates it: slashes of logs, points, and the colons of cameras (Exif).
 */
const ISO_FORMS: ReadonlyArray<[RegExp, (year: number, first: number, second: number) => number | null]> = [
  [withClock(String.raw`(\d{4})([-/.:]?)(\d\d)\2(\d\d)`), dayOfMonth],
  [withClock(String.raw`(\d{4})(-?)(\d{3})()`), dayOfYear],
  [withClock(String.raw`(\d{4})(-?)W(\d\d)\2(\d)`), dayOfWeek],
];
/** What Go prints behind a time of its clock. */
const GO_MONOTONIC = / m=[+-]\d+\.\d+$/;
const DAY = /^\d{4}(?:([-/.:])\d\d\1\d\d|-?\d{3}|-?W\d\d-?\d)$/i;

const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const NAMED_CLOCK = String.raw`(?<clock>\d\d:\d\d(?::\d\d(?:\.\d+)?)?)`;
const NAMED_ZONE = String.raw`(?: ?(?<zone>Z|UTC?|GMT|(?:UTC|GMT)?[+-]\d\d:?\d\d))?`;
/** With names of months: RFC 1123 and 5322, C's asctime and `date`, JavaScript's String(date). */
const NAMED_FORMS: readonly RegExp[] = [
  `(?:(?<weekday>[a-z]{3})[a-z]*,? )?(?<day>\\d{1,2})[ -](?<month>[a-z]{3})[ -](?<year>\\d{4}) ${NAMED_CLOCK}${NAMED_ZONE}`,
  `(?<weekday>[a-z]{3}) (?<month>[a-z]{3}) +(?<day>\\d{1,2}) ${NAMED_CLOCK}${NAMED_ZONE} (?<year>\\d{4})`,
  `(?<weekday>[a-z]{3}) (?<month>[a-z]{3}) (?<day>\\d{1,2}) (?<year>\\d{4}) ${NAMED_CLOCK}${NAMED_ZONE}`,
].map((form) => new RegExp(String.raw`^${form}(?: \([^()]*\))?$`, 'i'));

/** Parses a time with a date to milliseconds, rounded down; UTC without a zone. Null for anything that has not one meaning. */
export function parseTimeText(text: string): number | null {
  if (text.length > TEXT_CHARACTERS) return null;
  if (GO_MONOTONIC.test(text)) return parseTimeText(text.replace(GO_MONOTONIC, ''));
  for (const [form, toDayMs] of ISO_FORMS) {
    const match = form.exec(text);
    if (match === null) continue;
    const dayMs = toDayMs(Number(match[1]), Number(match[3]), Number(match[4]));
    return dayMs === null ? null : addClock(dayMs, match);
  }
  return parseNamed(text);
}

/** Whether the text of a time is a day without a clock time. */
export const isDayText = (text: string): boolean => DAY.test(text);

function addClock(dayMs: number, match: RegExpExecArray): number | null {
  const hour = Number(match[5] ?? 0);
  const minute = Number(match[6] ?? 0);
  const second = Number(match[7] ?? 0);
  const fraction = match[8];
  if (hour > 24 || minute > 59 || second > 60) return null;
  // A leap second is the first moment of the next minute.
  const ms = fraction === undefined || second === 60 ? 0 : Number(fraction.slice(0, 3).padEnd(3, '0'));
  const clockMs = hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + ms;
  const offsetMs = parseOffset(match[9]);
  if (offsetMs === null || clockMs > DAY_MS) return null;
  const timeMs = dayMs + clockMs - offsetMs;
  return timeMs < EARLIEST_MS ? null : timeMs;
}

function parseOffset(zone: string | undefined): number | null {
  if (zone === undefined || zone === 'Z') return 0;
  const [, sign, hour, minute] = /([+ \u2212-])(\d\d):?(\d\d)?/.exec(zone) ?? [];
  if (sign === undefined) return 0;
  const hours = Number(hour);
  const minutes = Number(minute ?? 0);
  if (hours > 23 || minutes > 59) return null;
  return (sign === '-' || sign === '\u2212' ? -1 : 1) * (hours * HOUR_MS + minutes * MINUTE_MS);
}

function dayOfMonth(year: number, month: number, day: number): number | null {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? date.getTime() : null;
}

function dayOfYear(year: number, day: number): number | null {
  const date = new Date(0);
  date.setUTCFullYear(year, 0, day);
  return date.getUTCFullYear() === year ? date.getTime() : null;
}

/** The week with 4 January is the first one of a year, and begins on a Monday. */
function dayOfWeek(year: number, week: number, weekday: number): number | null {
  if (week < 1 || weekday < 1 || weekday > 7) return null;
  const dayMs = firstMonday(year) + (week - 1) * 7 * DAY_MS + (weekday - 1) * DAY_MS;
  return dayMs < firstMonday(year + 1) ? dayMs : null;
}

function firstMonday(year: number): number {
  const date = new Date(0);
  date.setUTCFullYear(year, 0, 4);
  return date.getTime() - ((date.getUTCDay() + 6) % 7) * DAY_MS;
}

function parseNamed(text: string): number | null {
  const found = NAMED_FORMS.map((form) => form.exec(text)).find((match) => match !== null)?.groups;
  if (found === undefined) return null;
  const { year, month = '', day = '', weekday, clock, zone = '' } = found;
  const monthNumber = MONTHS.indexOf(month.toLowerCase()) + 1;
  const dayMs = dayOfMonth(Number(year), monthNumber, Number(day));
  if (monthNumber === 0 || dayMs === null) return null;
  const isOtherDay = weekday !== undefined && WEEKDAYS[new Date(dayMs).getUTCDay()] !== weekday.toLowerCase();
  return isOtherDay ? null : parseTimeText(`${new Date(dayMs).toISOString().slice(0, 10)}T${clock}${zone}`);
}
