/** Lists past events of objects in an interval: packets, commands and their outcomes, and changes of objects. */
import type { Scope } from '../core/access.js';
import { badRequest } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore } from '../core/stores.js';
import type { StreamChange } from '../platform/mongo/changes/decoder.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';
import { comparePlaces, type PastPlace, type PastQuery } from './past-event.js';
import { type PastSubject, stampOf, timeOf, toPastObjectEvent } from './past-object-events.js';
import { readPacketEvents } from './past-packet-events.js';
import {
  isNew,
  mergeParts,
  type PastEvent,
  type PastPart,
  timesWithin,
  toPastEvent,
  upToEnd,
  wants,
} from './past-parts.js';
import { readTimedEvents, TIMED_ALARMS, TIMED_COMMANDS } from './past-timed-events.js';
import { readPastUpdates } from './past-updates.js';

export interface PastPage {
  readonly events: readonly PastEvent[];
  /** The place from which to read on; null at the end. */
  readonly next: PastPlace | null;
}

const OBJECTS = builtInStore('objects');

/** The `_id`s of the visible objects. Throws a 400 when there are too many. */
export async function findVisibleObjects(database: Database, scope: Scope): Promise<string[]> {
  const options = { projection: { _id: 1 }, limit: LIMITS.pastObjects + 1, maxTimeMS: LIMITS.databaseOperationMs };
  const find = () => collectionOf(database, OBJECTS).find(scopeFilter(OBJECTS, scope), options).toArray();
  const found = await mapDriverErrors(find, LIMITS.databaseOperationMs);
  if (found.length > LIMITS.pastObjects) {
    throw badRequest(`objects: you see more than ${LIMITS.pastObjects} objects; name the ones you want`);
  }
  return found.map(({ _id }) => String(_id));
}

/** The events of these objects as the caller saw them, ordered by time. */
export async function listPastEvents(database: Database, subject: PastSubject, query: PastQuery): Promise<PastPage> {
  const { objectIds, isAll } = subject;
  const isEmpty = objectIds.length === 0 && !isAll;
  if (isEmpty || query.limit === 0 || query.names.size === 0) return { events: [], next: null };
  // Most events are packets: they usually tell where the page ends, and the rest is read only up to there.
  const packets = await readPacketEvents(database, objectIds, query);
  const left = upToEnd(query, packets);
  const others = [
    await readTimedEvents(database, TIMED_COMMANDS, objectIds, left),
    await readTimedEvents(database, TIMED_ALARMS, objectIds, left),
    await readObjectEvents(database, subject, left),
  ];
  const { events, readTo } = mergeParts([packets, ...others]);
  const page = events.slice(0, query.limit);
  if (page.length === query.limit) return { events: page, next: page.at(-1) ?? null };
  // Without enough events in a long interval, the next page continues after the part that was read.
  return { events: page, next: readTo };
}

async function readObjectEvents(database: Database, subject: PastSubject, query: PastQuery): Promise<PastPart> {
  if (!wants(query, 'object-update', 'object-created', 'object-removed')) return { events: [], readTo: null };
  const requested = new Set(subject.objectIds);
  const { from: fromMs, to: toMs } = timesWithin(query);
  const eventOf = (change: StreamChange) => {
    const event = toPastObjectEvent(change, requested, subject);
    return event !== null && query.names.has(event.name) ? event : null;
  };
  const placeOf = (change: StreamChange): PastPlace => {
    const timeMs = timeOf(change);
    return { timeMs, stampUs: stampOf(change, timeMs), id: change.id };
  };
  const isWanted = (change: StreamChange): boolean => {
    const place = placeOf(change);
    if (place.timeMs < fromMs || place.timeMs > toMs || !isNew(place, query)) return false;
    return eventOf(change) !== null;
  };
  const interval = { fromMs, toMs, limit: query.limit + 1 };
  const { changes, readToMs } = await readPastUpdates(database, interval, isWanted, timeOf);
  const events = changes.flatMap((change) => {
    const event = eventOf(change);
    return event === null ? [] : [toPastEvent(event.name, event.data, placeOf(change), change.position)];
  });
  // Changes of that millisecond may follow.
  const readTo = readToMs === null ? null : { timeMs: readToMs, stampUs: 0, id: '0'.repeat(24) };
  return { events: events.sort(comparePlaces), readTo };
}
