/** The hours of a shift, by the clock of the reader. Pure. */
import { DAY_MS, HOUR_MS } from '../../core/units.js';

export interface Hours {
  /** `06:00` */
  readonly from: string;
  /** On the next day where it is not after the beginning. */
  readonly to: string;
}

export const USUAL_HOURS: Hours = { from: '06:00', to: '14:00' };
const USUAL_LENGTH_MS = 8 * HOUR_MS;

const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d$/;

/** `06:00-14:00`, as the address has them; undefined for whole days. */
export function parseHours(text = ''): Hours | undefined {
  const [from = '', to = '', more] = text.split('-');
  return TIME.test(from) && TIME.test(to) && more === undefined ? { from, to } : undefined;
}

export const isOvernight = ({ from, to }: Hours): boolean => to <= from;

/** The day after this one: `2026-11-16`. */
export const nextDay = (day: string): string => new Date(Date.parse(day) + DAY_MS).toISOString().slice(0, 10);

/** Another beginning or end, as the address has it; what is missing makes a shift of eight hours, and none are none. */
export function withHour(hours: Hours | undefined, name: 'from' | 'to', time: string): string {
  if (!TIME.test(time)) return '';
  const other = name === 'from' ? 'to' : 'from';
  const lengthMs = name === 'from' ? USUAL_LENGTH_MS : DAY_MS - USUAL_LENGTH_MS;
  const all = { [other]: moved(time, lengthMs), ...hours, [name]: time } as unknown as Hours;
  return `${all.from}-${all.to}`;
}

const moved = (time: string, ms: number): string =>
  new Date((Date.parse(`1970-01-01T${time}Z`) + ms) % DAY_MS).toISOString().slice(11, 16);

/** The day on which the latest of these hours began that are over. */
export function lastShiftDay(nowMs: number, hours: Hours): string {
  const now = new Date(nowMs);
  const hasEnded = (daysAgo: number): boolean => {
    const [hour = 0, minute = 0] = hours.to.split(':').map(Number);
    const day = now.getDate() - daysAgo + Number(isOvernight(hours));
    return new Date(now.getFullYear(), now.getMonth(), day, hour, minute).getTime() <= nowMs;
  };
  const daysAgo = [0, 1].find(hasEnded) ?? 2;
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysAgo);
  return [day.getFullYear(), two(day.getMonth() + 1), two(day.getDate())].join('-');
}

const two = (value: number): string => String(value).padStart(2, '0');
