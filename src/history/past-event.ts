/** Past events: parameters and positions of queries for the events of an interval. */

import { isId } from '../core/entity.js';
import { badRequest } from '../core/errors.js';
import { EVENT_NAMES, type EventName } from '../core/feed.js';

/** The names of presence packets among past events; live, they are `object-packet` like all others. */
const PRESENCE_NAMES = ['object-online', 'object-offline'] as const;
export type PastEventName = EventName | (typeof PRESENCE_NAMES)[number];
export const PAST_EVENT_NAMES: readonly PastEventName[] = [...EVENT_NAMES, ...PRESENCE_NAMES];

/** A place in the order of past events: by time in ms, then by stamp, then by `_id` of the packet, object or command. */
export interface PastPlace {
  readonly timeMs: number;
  readonly stampUs: number;
  readonly id: string;
}

export interface PastQuery {
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly names: ReadonlySet<PastEventName>;
  /** The place at which the previous page ended. */
  readonly after: PastPlace | null;
  readonly limit: number;
}

/** Parses the requested names: those of `events`, or all, without those of `events!`. Ignores unknown names. */
export function parsePastNames(include: string | null, exclude: string | null): Set<PastEventName> {
  const split = (text: string): string[] => text.split(',').map((name) => name.trim());
  const wanted = include ? split(include) : null;
  const unwanted = exclude ? split(exclude) : [];
  return new Set(PAST_EVENT_NAMES.filter((name) => (wanted?.includes(name) ?? true) && !unwanted.includes(name)));
}

export function comparePlaces(a: PastPlace, b: PastPlace): number {
  return a.timeMs - b.timeMs || a.stampUs - b.stampUs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Formats a place as the value of the parameter `after`. */
export const placeToText = ({ timeMs, stampUs, id }: PastPlace): string => `${timeMs}.${stampUs}.${id}`;

/** Parses the value of `after`. Throws a 400 that names the parameter. */
export function parsePlace(text: string | null): PastPlace | null {
  if (text === null || text === '') return null;
  const [, time, stamp, id] = /^(-?\d{1,16})\.(-?\d{1,16})\.([0-9a-f]{24})$/.exec(text) ?? [];
  if (time === undefined || !isId(id))
    throw badRequest('after: expected the value from the Link header of the previous page');
  return { timeMs: Number(time), stampUs: Number(stamp), id };
}
