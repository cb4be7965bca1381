/** Reports that are sent by mail on a schedule: what they say, when they are due, and of which interval they are. Pure. */
import { Cron } from 'croner';
import { badRequest } from './errors.js';
import { isObject, type Json, type JsonObject } from './json.js';
import { isReport, REPORT_KINDS, type ReportName } from './report-kinds.js';
import { type Notify, parseNotify } from './rule/notifying.js';
import { lastHours, parseSchedule, type Schedule } from './rule/schedule.js';
import { DAY_MS, HOUR_MS } from './units.js';
import { findZone, type Zone } from './zone.js';

export const MAILED_INTERVALS = ['today', 'yesterday', 'last week', 'last month', 'last shift'] as const;
export type MailedInterval = (typeof MAILED_INTERVALS)[number];

export const MAIL_LANGUAGES = ['en', 'de'] as const;
export type MailLanguage = (typeof MAIL_LANGUAGES)[number];

/** What a report may be asked for besides its interval. */
export const MAILED_QUERY = [
  'group',
  'labels',
  'objects',
  'every',
  'gap',
  'stopTime',
  'stopRadius',
  'geofences',
  'param',
] as const;

/** When a report is due, by the clock of a time zone. */
export interface Times {
  /** Five fields; the first one is a minute. */
  readonly cron: string;
  readonly tz: string;
}

export interface ScheduledReport extends Times {
  readonly name: string;
  readonly report: ReportName;
  readonly query: Readonly<Record<string, string>>;
  readonly interval: MailedInterval;
  /** Those of the last shift; null for the other intervals. */
  readonly hours: Schedule | null;
  readonly zone: Zone;
  readonly to: Pick<Notify, 'users' | 'group'>;
  readonly language: MailLanguage;
  readonly isActive: boolean;
}

/** Throws a 400 that names the field. */
export function parseScheduledReport(fields: JsonObject): ScheduledReport {
  const { name, report, interval, language = 'en', active = true } = fields;
  const tz = String(fields.tz ?? 'UTC');
  const zone = findZone(tz);
  if (zone === null) throw badRequest('tz: expected a time zone such as Europe/Berlin');
  if (typeof report !== 'string' || !isReport(report)) {
    throw badRequest(`report: expected one of ${REPORT_KINDS.join(', ')}`);
  }
  return {
    name: String(name),
    report,
    query: parseQuery(fields.query ?? null),
    interval: interval as MailedInterval,
    hours: parseHours(fields, tz),
    cron: parseCron(fields.cron ?? null, tz),
    tz,
    zone,
    to: parseRecipients(fields.to ?? null),
    language: language as MailLanguage,
    isActive: active !== false,
  };
}

const EXPECTED_CRON = 'expected minute, hour, day of the month, month and day of the week, such as "0 6 * * mon"';

/** One minute, so that it is due once an hour at most. */
const CRON = /^[0-5]?\d(?: [\w*,/#-]{1,64}){4}$/;

function parseCron(value: Json, tz: string): string {
  if (typeof value !== 'string') throw badRequest(`cron: ${EXPECTED_CRON}`);
  if (!CRON.test(value)) throw badRequest(`cron: ${EXPECTED_CRON}; the minute is one number`);
  if (!isPossible({ cron: value, tz })) throw badRequest('cron: there is no such day');
  return value;
}

const toCron = ({ cron, tz }: Times): Cron => new Cron(cron, { timezone: tz, mode: '5-part', paused: true });

function isPossible(times: Times): boolean {
  try {
    return nextDue(times, 0) !== null;
  } catch {
    throw badRequest(`cron: ${EXPECTED_CRON}`);
  }
}

/** When it is due next after this moment; null for never. A time that the clock skips is the first one after it; one that comes twice is the first. */
export const nextDue = (times: Times, afterMs: number): number | null =>
  toCron(times).nextRun(new Date(afterMs))?.getTime() ?? null;

/** When it is due next: an hour after it was due last at the earliest, however often its times are changed. */
export const dueAfter = (times: Times, nowMs: number, lastDueMs: number | null): number | null =>
  nextDue(times, lastDueMs === null ? nowMs : Math.max(nowMs, lastDueMs + HOUR_MS - 1));

/** What a schedule waits for. */
export interface Waiting {
  /** When somebody asked to have it sent now; null if nobody did. */
  readonly askedMs: number | null;
  /** Since when it is due by its times; null if it is not. */
  readonly dueMs: number | null;
  /** When it was due by its times before; null for never. */
  readonly lastDueMs: number | null;
}

export interface Turn {
  /** The time for which it is sent; null if it is not, since it was due less than an hour before. */
  readonly atMs: number | null;
  /** Since when it waits for that. */
  readonly sinceMs: number;
  readonly lastDueMs: number | null;
  /** When it is due next; null for never. */
  readonly nextMs: number | null;
}

/** What becomes of a schedule that waits: what it was asked for, and all times at which it was due, are one report. */
export function turnOf(
  settings: Times & Pick<ScheduledReport, 'isActive'>,
  { askedMs, dueMs, lastDueMs }: Waiting,
  nowMs: number,
): Turn {
  const latestMs = dueMs === null ? null : latestDue(settings, dueMs, nowMs);
  const isTimed = latestMs !== null && (lastDueMs === null || latestMs >= lastDueMs + HOUR_MS);
  const timedMs = isTimed ? latestMs : null;
  const lastMs = timedMs ?? lastDueMs;
  return {
    atMs: askedMs === null ? timedMs : Math.max(askedMs, timedMs ?? 0),
    sinceMs: Math.min(askedMs ?? nowMs, (isTimed ? dueMs : null) ?? nowMs),
    lastDueMs: lastMs,
    nextMs: settings.isActive ? dueAfter(settings, nowMs, lastMs) : null,
  };
}

/** The latest time at which it was due, if there were several meanwhile. */
export function latestDue(times: Times, dueMs: number, nowMs: number): number {
  // The library looks for a time before this one.
  const [latest] = toCron(times).previousRuns(1, new Date(nowMs + 1));
  return Math.max(dueMs, latest?.getTime() ?? dueMs);
}

function parseQuery(value: Json): Readonly<Record<string, string>> {
  if (value === null) return {};
  if (!isObject(value)) throw badRequest('query: expected an object with the parameters of the report');
  for (const [name, one] of Object.entries(value)) {
    if (!(MAILED_QUERY as readonly string[]).includes(name)) {
      throw badRequest(`query.${name}: not known; expected ${MAILED_QUERY.join(', ')}`);
    }
    if (typeof one !== 'string') throw badRequest(`query.${name}: expected a text, as in the address of the report`);
  }
  return value as Record<string, string>;
}

function parseHours({ interval, hours = null }: JsonObject, tz: string): Schedule | null {
  if (interval !== 'last shift') {
    if (hours !== null) throw badRequest('hours: only with the interval "last shift"');
    return null;
  }
  if (!isObject(hours))
    throw badRequest('hours: required for the last shift, such as {"from": "06:00", "to": "14:00"}');
  const other = Object.keys(hours).find((name) => name !== 'from' && name !== 'to');
  if (other !== undefined) throw badRequest(`hours.${other}: not known; expected from and to`);
  for (const name of ['from', 'to']) {
    if ((hours[name] ?? null) === null) throw badRequest(`hours.${name}: required`);
  }
  return parseSchedule({ ...hours, tz }, 'hours');
}

function parseRecipients(value: Json): ScheduledReport['to'] {
  if (isObject(value) && 'text' in value) throw badRequest('to.text: not known; expected users and group');
  if (!isObject(value)) throw badRequest('to: expected an object with users or group');
  const { users, group } = parseNotify(value, 'to');
  return { users, group };
}

/** The interval of a report that is due at this moment, both ends included. Weeks begin on Monday. */
export function intervalAt(
  { interval, hours, zone }: Pick<ScheduledReport, 'interval' | 'hours' | 'zone'>,
  dueMs: number,
): { readonly fromMs: number; readonly toMs: number } {
  const today = Math.floor((dueMs + zone.offsetMs(dueMs)) / DAY_MS);
  const startOf = (day: number): number => zone.toInstant(day * DAY_MS);
  const days = (first: number, end: number) => ({ fromMs: startOf(first), toMs: startOf(end) - 1 });
  if (hours !== null) {
    const { from, to } = lastHours(hours, dueMs);
    return { fromMs: from, toMs: to - 1 };
  }
  if (interval === 'today') return { fromMs: startOf(today), toMs: dueMs };
  if (interval === 'yesterday') return days(today - 1, today);
  if (interval === 'last week') {
    // The first day of the epoch was a Thursday.
    const monday = today - ((((today + 3) % 7) + 7) % 7);
    return days(monday - 7, monday);
  }
  const date = new Date(today * DAY_MS);
  const firstOf = (months: number): number => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1) / DAY_MS;
  return days(firstOf(-1), firstOf(0));
}
