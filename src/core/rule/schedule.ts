/** The hours of a rule: on which days, from when to when, in which time zone. Pure. */
import { badRequest } from '../errors.js';
import { isObject, type Json } from '../json.js';
import { DAY_MS, MINUTE_MS } from '../units.js';
import { findZone, type Zone } from '../zone.js';

export const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;

export interface Schedule {
  /** The days on which it opens, Sunday is 0. */
  readonly days: ReadonlySet<number>;
  /** Since midnight of the local clock. Where the end is not after the beginning, it is on the next day. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly zone: Zone;
}

/** Throws a 400 that names the place. */
export function parseSchedule(value: Json | undefined, name = 'schedule'): Schedule | null {
  if (value === undefined || value === null) return null;
  if (!isObject(value)) throw badRequest(`${name}: expected an object with days, from, to and tz`);
  const other = Object.keys(value).find((one) => !['days', 'from', 'to', 'tz'].includes(one));
  if (other !== undefined) throw badRequest(`${name}.${other}: not known in a schedule`);
  const { days = null, from = null, to = null, tz = null } = value;
  const isDays = Array.isArray(days) && days.length > 0 && days.every((day) => DAYS.includes(day as never));
  if (days !== null && !isDays) throw badRequest(`${name}.days: expected a list of ${DAYS.join(', ')}`);
  const zone = typeof tz === 'string' ? findZone(tz) : findZone('UTC');
  if (zone === null || (tz !== null && typeof tz !== 'string')) {
    throw badRequest(`${name}.tz: expected a time zone such as "Europe/Berlin"`);
  }
  return {
    days: new Set(isDays ? days.map((day) => DAYS.indexOf(day as never)) : DAYS.keys()),
    fromMs: parseClock(from ?? '00:00', `${name}.from`),
    toMs: parseClock(to ?? '24:00', `${name}.to`),
    zone,
  };
}

function parseClock(value: Json, place: string): number {
  const [, hours, minutes] = (typeof value === 'string' && /^([01]\d|2[0-4]):([0-5]\d)$/.exec(value)) || [];
  const ms = Number(hours) * 60 * MINUTE_MS + Number(minutes) * MINUTE_MS;
  if (ms <= DAY_MS) return ms;
  throw badRequest(`${place}: expected a time of day such as "08:00"`);
}

/** The hours that begin on the day of the local clock, as instants; null where the day has none. */
function hoursOf({ days, fromMs, toMs, zone }: Schedule, localDay: number): { from: number; to: number } | null {
  if (!days.has((((localDay + 4) % 7) + 7) % 7)) return null;
  const endMs = toMs <= fromMs ? toMs + DAY_MS : toMs;
  return { from: zone.toInstant(localDay * DAY_MS + fromMs), to: zone.toInstant(localDay * DAY_MS + endMs) };
}

const dayOf = ({ zone }: Schedule, atMs: number): number => Math.floor((atMs + zone.offsetMs(atMs)) / DAY_MS);

/** Whether the instant is within the hours. */
export function isOpen(schedule: Schedule, atMs: number): boolean {
  const today = dayOf(schedule, atMs);
  return [today - 1, today].some((day) => {
    const hours = hoursOf(schedule, day);
    return hours !== null && atMs >= hours.from && atMs < hours.to;
  });
}

/** When the hours that contain the instant end; the instant itself where it is in none. */
export function findClosing(schedule: Schedule, atMs: number): number {
  const today = dayOf(schedule, atMs);
  const ends = [today - 1, today].flatMap((day) => {
    const hours = hoursOf(schedule, day);
    return hours !== null && atMs >= hours.from && atMs < hours.to ? [hours.to] : [];
  });
  return Math.max(atMs, ...ends);
}

/** When it opens next after the instant, at which it is closed. */
export function nextOpening(schedule: Schedule, atMs: number): number {
  const today = dayOf(schedule, atMs);
  // Hours of one day of the week may be skipped by the clock, but not in two weeks in a row.
  for (let day = today; day <= today + 15; day++) {
    const hours = hoursOf(schedule, day);
    if (hours !== null && hours.from > atMs && hours.to > hours.from) return hours.from;
  }
  return atMs + 16 * DAY_MS;
}

/** The latest hours that are over at the instant. */
export function lastHours(schedule: Schedule, atMs: number): { readonly from: number; readonly to: number } {
  const today = dayOf(schedule, atMs);
  for (let day = today; day >= today - 15; day--) {
    const hours = hoursOf(schedule, day);
    if (hours !== null && hours.to <= atMs && hours.to > hours.from) return hours;
  }
  return { from: atMs, to: atMs };
}
