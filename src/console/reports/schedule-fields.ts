/** A schedule as its form has it. Pure. */
import type { ReportName } from '../../core/report-kinds.js';
import type { MailedInterval } from '../../core/scheduled-report.js';
import { type Asked, type Query, toSelection } from './asked.js';
import { type Hours, USUAL_HOURS } from './hours.js';

export const INTERVALS: readonly MailedInterval[] = ['today', 'yesterday', 'last week', 'last month', 'last shift'];

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
/** When it is sent: each of them at a time of day. */
export const FREQUENCIES = ['day', 'workdays', ...WEEKDAYS, 'month'] as const;
export type Frequency = (typeof FREQUENCIES)[number];

/** By the interval that the page shows: what is not over yet is sent when it is. */
export function intervalOf({ range, hours }: Pick<Asked, 'range' | 'hours'>): MailedInterval {
  if (hours !== undefined) return 'last shift';
  if (range === 'today' || range === 'yesterday') return 'yesterday';
  return range === 'thisMonth' || range === 'lastMonth' ? 'last month' : 'last week';
}

export function frequencyOf(interval: MailedInterval): Frequency {
  if (interval === 'last week') return 'mon';
  return interval === 'last month' ? 'month' : 'day';
}

const DAYS: Readonly<Partial<Record<Frequency, string>>> = { day: '* * *', workdays: '* * mon-fri', month: '1 * *' };

/** `06:00` and `mon` are `0 6 * * mon`. */
export function toCron(frequency: Frequency, time: string): string {
  const [hour, minute] = time.split(':').map(Number);
  return `${minute} ${hour} ${DAYS[frequency] ?? `* * ${frequency}`}`;
}

/** `me`, or a user or a group: `user 65a…`, `group 65a…`. */
export function toRecipients(to: string, me: string): { users: string[] } | { group: string } {
  const [kind, id = me] = to.split(' ');
  return kind === 'group' ? { group: id } : { users: [id] };
}

export interface ScheduleFields {
  readonly name: string;
  readonly interval: MailedInterval;
  readonly hours: Hours;
  readonly frequency: Frequency;
  readonly time: string;
  readonly to: string;
}

export function fieldsOf(asked: Asked, name: string): ScheduleFields {
  const interval = intervalOf(asked);
  const hours = asked.hours ?? USUAL_HOURS;
  const time = interval === 'last shift' ? hours.to : '06:00';
  return { name, interval, hours, frequency: frequencyOf(interval), time, to: 'me' };
}

/** The body of the request. */
export function toSchedule(
  { name, interval, hours, frequency, time, to }: ScheduleFields,
  { kind, query, me, tz, language }: { kind: ReportName; query: Query; me: string; tz: string; language: 'en' | 'de' },
) {
  return {
    name: name.trim(),
    report: kind,
    query: toSelection(query, kind),
    interval,
    ...(interval === 'last shift' && { hours: { ...hours } }),
    cron: toCron(frequency, time),
    tz,
    to: toRecipients(to, me),
    language,
  };
}
