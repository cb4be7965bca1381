/** Events as they are read later: what was stored in an interval, by name. Pure. */
import { badRequest } from '../errors.js';
import { isId } from './entity.js';
import { EVENT_NAMES, type EventName } from './feed.js';

/** What a packet that tells presence alone is called; live it is a packet like any other. */
export const PRESENCE_NAMES = ['object-online', 'object-offline'] as const;
export type PastEventName = EventName | (typeof PRESENCE_NAMES)[number];
export const PAST_EVENT_NAMES: readonly PastEventName[] = [...EVENT_NAMES, ...PRESENCE_NAMES];

/** A place in the order of past events: its time in ms, what decides among those of one time, and the `_id` of what it tells. */
export interface PastPlace {
  readonly timeMs: number;
  readonly stampUs: number;
  readonly id: string;
}

export interface PastQuery {
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly names: ReadonlySet<PastEventName>;
  /** What was read before ends here. */
  readonly after: PastPlace | null;
  readonly limit: number;
}

/** The names that are asked for: those of `events`, or all, without those of `events!`. Others are ignored. */
export function readPastNames(include: string | null, exclude: string | null): Set<PastEventName> {
  const split = (text: string): string[] => text.split(',').map((name) => name.trim());
  const [wanted, unwanted] = [include ? split(include) : null, exclude ? split(exclude) : []];
  return new Set(PAST_EVENT_NAMES.filter((name) => (wanted?.includes(name) ?? true) && !unwanted.includes(name)));
}

export function comparePlaces(a: PastPlace, b: PastPlace): number {
  return a.timeMs - b.timeMs || a.stampUs - b.stampUs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** A place as the parameter `after` has it. */
export const placeToText = ({ timeMs, stampUs, id }: PastPlace): string => `${timeMs}.${stampUs}.${id}`;

/** The same read again; a 400 that names the parameter. */
export function readPlace(text: string | null): PastPlace | null {
  if (text === null || text === '') return null;
  const [, time, stamp, id] = /^(-?\d{1,16})\.(-?\d{1,16})\.([0-9a-f]{24})$/.exec(text) ?? [];
  if (time === undefined || !isId(id)) throw badRequest('after: expected what Link says after the page before');
  return { timeMs: Number(time), stampUs: Number(stamp), id };
}
