/** What a report is asked for, as the address of its page says it. Pure. */
import { REPORT_KINDS, type ReportName } from '../../core/report-kinds.js';
import { type Hours, isOvernight, lastShiftDay, nextDay, parseHours, USUAL_HOURS } from './hours.js';
import { type DayRange, RANGES, type Range, toDayRange } from './ranges.js';

export type Query = Readonly<Record<string, string>>;

export interface Asked extends DayRange {
  readonly kind: ReportName;
  /** Null for days of one's own. */
  readonly range: Range | 'lastShift' | null;
  /** Of the first and the last day; undefined for whole days. */
  readonly hours: Hours | undefined;
}

/** Whether this is a day of a year that has four digits: a field of a day takes more of them. */
export const isDay = (text: string): boolean => /^\d{4}-\d{2}-\d{2}$/.test(text);

export function askedOf(query: Query, nowMs: number, firstDay: number): Asked {
  const kind = REPORT_KINDS.find((one) => one === query.kind) ?? 'mileage';
  const { from = '', to = '' } = query;
  const hours = parseHours(query.hours);
  if (isDay(from) && isDay(to) && from <= to) return { kind, from, to, range: null, hours };
  if (query.range === 'lastShift' && kind === 'shift') {
    const day = lastShiftDay(nowMs, hours ?? USUAL_HOURS);
    return { kind, range: query.range, from: day, to: day, hours: hours ?? USUAL_HOURS };
  }
  const range = RANGES.find((one) => one === query.range) ?? 'today';
  return { kind, range, hours, ...toDayRange(nowMs, range, firstDay) };
}

/** Kinds that can be divided into days, weeks or months. */
export const isDivisible = (kind: ReportName): boolean => !['trips', 'stops', 'shift'].includes(kind);

/** The query of the request. */
export function toRequest(query: Query, asked: Asked, tz: string): Query {
  const { from, to, hours } = asked;
  const interval =
    hours === undefined
      ? { from, to }
      : { from: `${from}T${hours.from}`, to: `${isOvernight(hours) ? nextDay(to) : to}T${hours.to}` };
  return { ...toSelection(query, asked.kind), ...interval, tz };
}

/** What is asked for besides the interval. */
export function toSelection({ group, objects, labels, every, param }: Query, kind: ReportName): Query {
  const all = {
    group,
    objects,
    labels,
    every: isDivisible(kind) ? every : undefined,
    param: kind === 'utilization' ? param : undefined,
  };
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => Boolean(entry[1])));
}
