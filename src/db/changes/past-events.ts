/** Lists past events of objects in an interval: packets, commands and their outcomes, and changes of objects. */
import { BSON, type Document, type Filter, ObjectId } from 'mongodb';
import { badRequest } from '../../errors.js';
import type { Scope } from '../../model/access.js';
import type { JsonObject } from '../../model/json.js';
import { LIMITS } from '../../model/limits.js';
import { PACKET_FIELDS } from '../../model/packet.js';
import { comparePlaces, type PastEventName, type PastPlace, type PastQuery } from '../../model/past-event.js';
import { COMMAND_ENDS, commandPayload } from '../../model/payload.js';
import { builtInStore } from '../../model/stores.js';
import { rawBatches } from '../bson/raw-batches.js';
import { hasOthers } from '../bson/reader.js';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import { PACKETS } from '../packets/packets.js';
import { collectionOf } from '../schema/collections.js';
import { toEntity, toPlain } from '../schema/mapping.js';
import { scopeFilter } from '../schema/visibility.js';
import type { StreamChange } from './decoder.js';
import { type PastSubject, stampOf, timeOf, toPastObjectEvent } from './past-object-events.js';
import { readPastUpdates } from './past-updates.js';

export interface PastEvent extends PastPlace {
  readonly json: Buffer;
}

export interface PastPage {
  readonly events: readonly PastEvent[];
  /** The place from which to read on; null at the end. */
  readonly next: PastPlace | null;
}

const OBJECTS = builtInStore('objects');
const COMMANDS = builtInStore('commands');
const END_TIME = '_end';

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
  const ids = objectIds.map((id) => new ObjectId(id));
  const lists = await Promise.all([
    packetEvents(database, ids, query),
    requestEvents(database, ids, query),
    endEvents(database, ids, query),
  ]);
  const updates = await objectEvents(database, subject, query);
  const all = [...lists.flat(), ...updates.events].sort(comparePlaces);
  // The unread part of the oplog may hold earlier events than the rest of these.
  const known = updates.readToMs === null ? all : all.filter(({ timeMs }) => timeMs < (updates.readToMs as number));
  const events = known.filter((event) => isNew(event, query)).slice(0, query.limit);
  const isCut = events.length === query.limit || known.length < all.length;
  // Without events in a long part of the oplog, the next page continues after that part.
  const readTo = { timeMs: updates.readToMs ?? 0, stampUs: 0, id: '0'.repeat(24) };
  return { events, next: isCut ? (events.at(-1) ?? readTo) : null };
}

const isNew = (place: PastPlace, { after }: PastQuery): boolean => after === null || comparePlaces(place, after) > 0;

const wants = ({ names }: PastQuery, ...some: PastEventName[]): boolean => some.some((name) => names.has(name));

function within({ fromMs, toMs, after }: PastQuery): { $gte: number; $lte: number } {
  const earliestMs = Math.max(fromMs ?? -LIMITS.pastFarMs, after?.timeMs ?? -LIMITS.pastFarMs);
  return { $gte: earliestMs, $lte: toMs ?? LIMITS.pastFarMs };
}

const objectsIn = (ids: readonly ObjectId[]): unknown => (ids.length === 1 ? ids[0] : { $in: ids });

async function packetEvents(database: Database, ids: readonly ObjectId[], query: PastQuery): Promise<PastEvent[]> {
  if (!wants(query, 'object-packet', 'object-online', 'object-offline')) return [];
  const { after } = query;
  const filter: Document = { _oid: objectsIn(ids), time: within(query) };
  if (after !== null) filter.$or = [{ time: { $gt: after.timeMs } }, { _ts: { $gte: after.stampUs } }];
  if (!wants(query, 'object-packet'))
    filter.$expr = { $lte: [{ $size: { $objectToArray: '$$ROOT' } }, PACKET_FIELDS.length] };
  const limit = query.limit + 1;
  const command = { find: PACKETS, filter, sort: { time: 1, _ts: 1 }, limit, batchSize: limit, allowDiskUse: true };
  const events: PastEvent[] = [];
  for await (const { documents } of rawBatches(database, command)) {
    for (const document of documents) {
      const data = toPlain(BSON.deserialize(document)) as JsonObject;
      const presence = data.online === false ? 'object-offline' : 'object-online';
      const name = hasOthers(document, PACKET_FIELDS) ? 'object-packet' : presence;
      if (!query.names.has(name)) continue;
      const place = { timeMs: Number(data.time), stampUs: Number(data._ts), id: String(data._id) };
      events.push(toEvent(name, data, place));
    }
  }
  return events;
}

async function requestEvents(database: Database, ids: readonly ObjectId[], query: PastQuery): Promise<PastEvent[]> {
  if (!wants(query, 'object-command-req')) return [];
  const filter = { object: objectsIn(ids), _id: createdWithin(query, 0) } as Filter<Document>;
  const options = { sort: { _id: 1 as const }, limit: query.limit + 1, maxTimeMS: LIMITS.databaseOperationMs };
  const find = () => collectionOf(database, COMMANDS).find(filter, options).toArray();
  const found = await mapDriverErrors(find, LIMITS.databaseOperationMs);
  return found.map((command) => toCommandEvent('object-command-req', command, Number(command.time)));
}

async function endEvents(database: Database, ids: readonly ObjectId[], query: PastQuery): Promise<PastEvent[]> {
  if (!wants(query, 'object-command-res', 'object-command-err')) return [];
  const statuses = Object.keys(COMMAND_ENDS).filter((status) => query.names.has(COMMAND_ENDS[status] as PastEventName));
  const pipeline = [
    {
      $match: {
        object: objectsIn(ids),
        status: { $in: statuses },
        _id: createdWithin(query, LIMITS.commandLifetimeMaxMs),
      },
    },
    { $set: { [END_TIME]: { $max: statuses.map((status) => `$times.${status}`) } } },
    { $match: { [END_TIME]: within(query) } },
    ...[{ $sort: { [END_TIME]: 1, _id: 1 } }, { $limit: query.limit + 1 }],
  ];
  const options = { maxTimeMS: LIMITS.databaseOperationMs };
  const find = () => collectionOf(database, COMMANDS).aggregate(pipeline, options).toArray();
  const found = await mapDriverErrors(find, LIMITS.databaseOperationMs);
  return found.map(({ [END_TIME]: endedMs, ...command }) =>
    toCommandEvent(COMMAND_ENDS[command.status] as PastEventName, command, Number(endedMs)),
  );
}

/** The `_id` of a command begins with the second of its creation. */
function createdWithin(query: PastQuery, beforeMs: number): Document {
  const { $gte, $lte } = within(query);
  const toId = (ms: number, rest: string): ObjectId =>
    new ObjectId(
      Math.min(Math.max(Math.floor(ms / 1_000), 0), 0xff_ff_ff_ff)
        .toString(16)
        .padStart(8, '0') + rest,
    );
  return { $gte: toId($gte - beforeMs, '0'.repeat(16)), $lte: toId($lte, 'f'.repeat(16)) };
}

function toCommandEvent(name: PastEventName, command: Document, timeMs: number): PastEvent {
  const entity = toEntity(COMMANDS, command);
  const data = commandPayload(String(entity.object), entity);
  return toEvent(name, data, { timeMs, stampUs: timeMs * 1_000, id: entity._id });
}

async function objectEvents(database: Database, subject: PastSubject, query: PastQuery) {
  if (!wants(query, 'object-update', 'object-created', 'object-removed')) return { events: [], readToMs: null };
  const requested = new Set(subject.objectIds);
  const { $gte: fromMs, $lte: toMs } = within(query);
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
    return event === null ? [] : [toEvent(event.name, event.data, placeOf(change), change.position)];
  });
  return { events, readToMs };
}

function toEvent(name: PastEventName, data: JsonObject, place: PastPlace, position?: string): PastEvent {
  const event = { event: name, data, time: place.timeMs, ...(position !== undefined && { position }) };
  return Object.assign(place, { json: Buffer.from(JSON.stringify(event)) });
}
