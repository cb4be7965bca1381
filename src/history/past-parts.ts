/** Reads past events of many objects, some objects at a time. */
import type { ObjectId } from 'mongodb';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { comparePlaces, type PastEventName, type PastPlace, type PastQuery } from './past-event.js';

export interface PastEvent extends PastPlace {
  readonly json: Buffer;
}

/** Events in their order. */
export interface PastPart {
  readonly events: readonly PastEvent[];
  /** The place up to which the events are complete; null when all were read, or more than the limit of the query. */
  readonly readTo: PastPlace | null;
}

/** Reads the events of some objects, at most one more than the limit; `objects` is the condition of a filter. */
export type ReadPart = (objects: unknown, query: PastQuery) => Promise<PastPart>;

const NOTHING: PastPart = { events: [], readTo: null };

/**
 * Reads the events of `pastObjectsAtOnce` objects at a time. For so many, MongoDB merges the index entries of each object in their
 * order and stops at the limit; for more, it would sort everything in the interval. Each part is read only up to where the page ends.
 */
export async function readInParts(ids: readonly ObjectId[], query: PastQuery, read: ReadPart): Promise<PastPart> {
  let found = NOTHING;
  for (let at = 0; at < ids.length; at += LIMITS.pastObjectsAtOnce) {
    const part = ids.slice(at, at + LIMITS.pastObjectsAtOnce);
    const objects = part.length === 1 ? part[0] : { $in: part };
    found = mergeParts([found, await read(objects, upToEnd(query, found))], query.limit + 1);
  }
  return found;
}

/** The events of all parts in their order, up to where all of them are complete. */
export function mergeParts(parts: readonly PastPart[], limit = Number.POSITIVE_INFINITY): PastPart {
  const ends = parts.flatMap(({ readTo }) => readTo ?? []).sort(comparePlaces);
  const readTo = ends[0] ?? null;
  const events = parts.flatMap((part) => part.events).sort(comparePlaces);
  const known = readTo === null ? events : events.filter((event) => comparePlaces(event, readTo) <= 0);
  return { events: known.slice(0, limit), readTo };
}

/** The query without times after the end of the page, if these events already tell it. */
export function upToEnd(query: PastQuery, { events, readTo }: PastPart): PastQuery {
  const last = events.length > query.limit ? events.at(-1) : undefined;
  const toMs = Math.min(
    query.toMs ?? LIMITS.timeMaxMs,
    last?.timeMs ?? LIMITS.timeMaxMs,
    readTo?.timeMs ?? LIMITS.timeMaxMs,
  );
  return { ...query, toMs };
}

/** Whether a place is after the previous page. */
export const isNew = (place: PastPlace, { after }: PastQuery): boolean =>
  after === null || comparePlaces(place, after) > 0;

export const wants = ({ names }: PastQuery, ...some: PastEventName[]): boolean => some.some((name) => names.has(name));

/** The interval that is left to read, as a condition of a filter. */
export function timesWithin({ fromMs, toMs, after }: PastQuery): { $gte: number; $lte: number } {
  const earliestMs = Math.max(fromMs ?? -LIMITS.timeMaxMs, after?.timeMs ?? -LIMITS.timeMaxMs);
  return { $gte: earliestMs, $lte: toMs ?? LIMITS.timeMaxMs };
}

export function toPastEvent(name: PastEventName, data: JsonObject, place: PastPlace, position?: string): PastEvent {
  const event = { event: name, data, time: place.timeMs, ...(position !== undefined && { position }) };
  return Object.assign(place, { json: Buffer.from(JSON.stringify(event)) });
}
