/** Past events of commands and alarms: each of their times is an event. */
import { type Document, type Filter, ObjectId } from 'mongodb';
import type { Entity } from '../core/entity.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { alarmPayload, COMMAND_ENDS, commandPayload } from '../core/payload.js';
import { builtInStore, type Store } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionOf } from '../platform/mongo/schema/collections.js';
import { toEntity } from '../platform/mongo/schema/mapping.js';
import type { PastEventName, PastQuery } from './past-event.js';
import { mergeParts, type PastEvent, type PastPart, readInParts, timesWithin, toPastEvent } from './past-parts.js';

/** A store whose entities belong to an object and have times that are events. */
export interface TimedStore {
  readonly store: Store;
  /** The path of each time, with the event that it is. Each has an index that begins with the object. */
  readonly times: ReadonlyMap<string, PastEventName>;
  /** The time that is before all others of an entity, even within one millisecond. */
  readonly first: string;
  readonly toPayload: (objectId: string, entity: JsonObject) => JsonObject;
}

/** Their creation and their outcomes. */
export const TIMED_COMMANDS: TimedStore = {
  store: builtInStore('commands'),
  times: new Map<string, PastEventName>([
    ['time', 'object-command-req'],
    ...Object.entries(COMMAND_ENDS).map(([status, name]) => [`times.${status}`, name] as const),
  ]),
  first: 'time',
  toPayload: commandPayload,
};

export const TIMED_ALARMS: TimedStore = {
  store: builtInStore('alarms'),
  times: new Map<string, PastEventName>([
    ['raised', 'alarm-raised'],
    ['cleared', 'alarm-cleared'],
  ]),
  first: 'raised',
  toPayload: alarmPayload,
};

/** Reads the events of a store, those of each time ordered by it. */
export async function readTimedEvents(
  database: Database,
  timed: TimedStore,
  objectIds: readonly string[],
  query: PastQuery,
): Promise<PastPart> {
  const wanted = [...timed.times].filter(([, name]) => query.names.has(name));
  const read = ([path, name]: [string, PastEventName]): Promise<PastPart> =>
    readInParts(objectIds, query, async (part, left) => {
      const found = await findByTime(database, { timed, path, objectIds: part }, left);
      return { events: found.map((document) => toEvent(timed, { path, name }, document)), readTo: null };
    });
  return mergeParts(await Promise.all(wanted.map(read)));
}

function findByTime(
  database: Database,
  {
    timed,
    path,
    objectIds,
  }: { readonly timed: TimedStore; readonly path: string; readonly objectIds: readonly string[] },
  query: PastQuery,
): Promise<Document[]> {
  const { from, to } = timesWithin(query);
  const ids = objectIds.map((id) => new ObjectId(id));
  const filter = {
    object: ids.length === 1 ? ids[0] : { $in: ids },
    [path]: { $gte: from, $lte: to },
    ...afterFilter(timed, path, query),
  } as Filter<Document>;
  const sort = { [path]: 1, _id: 1 } as const;
  // The other indexes that begin with the object would need a sort.
  const options = { sort, hint: { object: 1, ...sort }, limit: query.limit + 1, maxTimeMS: LIMITS.databaseOperationMs };
  const find = () => collectionOf(database, timed.store).find(filter, options).toArray();
  return mapDriverErrors(find, LIMITS.databaseOperationMs);
}

/** Only entities after the previous page: many can have the same time. */
function afterFilter(timed: TimedStore, path: string, { after }: PastQuery): Filter<Document> {
  if (after === null || after.stampUs < stampOf(timed, path, after.timeMs)) return {};
  const later = { [path]: { $gt: after.timeMs } };
  if (after.stampUs > stampOf(timed, path, after.timeMs)) return { $or: [later] };
  return { $or: [later, { _id: { $gt: new ObjectId(after.id) } }] };
}

const stampOf = ({ first }: TimedStore, path: string, timeMs: number): number =>
  timeMs * 1_000 + (path === first ? 0 : 1);

function toEvent(
  timed: TimedStore,
  { path, name }: { readonly path: string; readonly name: PastEventName },
  document: Document,
): PastEvent {
  const timeMs = Number(path.split('.').reduce((value, key) => value[key], document));
  const entity: Entity = toEntity(timed.store, document);
  const place = { timeMs, stampUs: stampOf(timed, path, timeMs), id: entity._id };
  return toPastEvent(name, timed.toPayload(String(entity.object), entity), place);
}
