/** Reads past events of many objects, some objects at a time. */
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

/** Reads the events of some objects, at most one more than the limit. */
export type ReadPart = (objectIds: readonly string[], query: PastQuery) => Promise<PastPart>;

const NOTHING: PastPart = { events: [], readTo: null };

/**
 * Reads the events of `pastObjectsAtOnce` objects at a time. For so many, MongoDB merges the index entries of each object in their
 * order and stops at the limit; for more, it would sort everything in the interval. Each part is read only up to where the page ends.
 */
export async function readInParts(ids: readonly string[], query: PastQuery, read: ReadPart): Promise<PastPart> {
  let found = NOTHING;
  for (let at = 0; at < ids.length; at += LIMITS.pastObjectsAtOnce) {
    const part = ids.slice(at, at + LIMITS.pastObjectsAtOnce);
    found = mergeParts([found, await read(part, upToEnd(query, found))], query.limit + 1);
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

/** The interval that is left to read, both ends included. */
export function timesWithin({ fromMs, toMs, after }: PastQuery): { readonly from: number; readonly to: number } {
  const from = Math.max(fromMs ?? -LIMITS.timeMaxMs, after?.timeMs ?? -LIMITS.timeMaxMs);
  return { from, to: toMs ?? LIMITS.timeMaxMs };
}

export function toPastEvent(name: PastEventName, data: JsonObject, place: PastPlace, position?: string): PastEvent {
  const event = { event: name, data, time: place.timeMs, ...(position !== undefined && { position }) };
  return Object.assign(place, { json: Buffer.from(JSON.stringify(event)) });
}
