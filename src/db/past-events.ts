/** What happened to objects in an interval: their packets, the commands to them and their ends, and changes of them. */
import { BSON, type Document, type Filter, ObjectId } from 'mongodb';
import { badRequest } from '../errors.js';
import type { Scope } from '../model/access.js';
import type { JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import { PACKET_FIELDS } from '../model/packet.js';
import { comparePlaces, type PastEventName, type PastPlace, type PastQuery } from '../model/past-event.js';
import { COMMAND_ENDS, changedFields, commandPayload, updatePayload } from '../model/payload.js';
import { builtInStore } from '../model/stores.js';
import { hasOthers } from './bson.js';
import { collectionOf, type Database } from './connect.js';
import { scopeFilter, toEntity, toPlain, translated } from './documents.js';
import { PACKETS } from './packets.js';
import { rawBatches } from './pages.js';
import { readPastUpdates } from './past-updates.js';
import type { StreamChange } from './stream-changes.js';

export interface PastEvent extends PastPlace {
  readonly json: Buffer;
}

export interface PastPage {
  readonly events: readonly PastEvent[];
  /** Where there may be more. */
  readonly next: PastPlace | null;
}

const OBJECTS = builtInStore('objects');
const COMMANDS = builtInStore('commands');
const END_TIME = '_end';

/** The `_id`s of the objects that the scope sees; a 400 where they are too many to be looked through. */
export async function findVisibleObjects(database: Database, scope: Scope): Promise<string[]> {
  const options = { projection: { _id: 1 }, limit: LIMITS.pastObjects + 1, maxTimeMS: LIMITS.databaseOperationMs };
  const find = () => collectionOf(database, OBJECTS).find(scopeFilter(OBJECTS, scope), options).toArray();
  const found = await translated(find, LIMITS.databaseOperationMs);
  if (found.length > LIMITS.pastObjects) {
    throw badRequest(`objects: you see more than ${LIMITS.pastObjects} objects; name those that are meant`);
  }
  return found.map(({ _id }) => String(_id));
}

/** The events of these objects, by time. */
export async function listPastEvents(
  database: Database,
  objectIds: readonly string[],
  query: PastQuery,
): Promise<PastPage> {
  if (objectIds.length === 0 || query.limit === 0 || query.names.size === 0) return { events: [], next: null };
  const ids = objectIds.map((id) => new ObjectId(id));
  const parts = await Promise.all([
    packetEvents(database, ids, query),
    requestEvents(database, ids, query),
    endEvents(database, ids, query),
  ]);
  const updates = await updateEvents(database, new Set(objectIds), query);
  const all = [...parts.flat(), ...updates.events].sort(comparePlaces);
  const isNew = (event: PastEvent): boolean => query.after === null || comparePlaces(event, query.after) > 0;
  // What the log was not read for yet may hold more before the rest.
  const known = updates.readToMs === null ? all : all.filter(({ timeMs }) => timeMs < (updates.readToMs as number));
  const events = known.filter(isNew).slice(0, query.limit);
  const isCut = events.length === query.limit || known.length < all.length;
  // Where the log told nothing for long, it is read on from there.
  const readTo = { timeMs: updates.readToMs ?? 0, stampUs: 0, id: '0'.repeat(24) };
  return { events, next: isCut ? (events.at(-1) ?? readTo) : null };
}

const wants = ({ names }: PastQuery, ...some: PastEventName[]): boolean => some.some((name) => names.has(name));

function within({ fromMs, toMs, after }: PastQuery): { $gte: number; $lte: number } {
  const least = Math.max(fromMs ?? -LIMITS.pastFarMs, after?.timeMs ?? -LIMITS.pastFarMs);
  return { $gte: least, $lte: toMs ?? LIMITS.pastFarMs };
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

/** Commands that were given. */
async function requestEvents(database: Database, ids: readonly ObjectId[], query: PastQuery): Promise<PastEvent[]> {
  if (!wants(query, 'object-command-req')) return [];
  const filter = { object: objectsIn(ids), _id: givenWithin(query, 0) } as Filter<Document>;
  const options = { sort: { _id: 1 as const }, limit: query.limit + 1, maxTimeMS: LIMITS.databaseOperationMs };
  const find = () => collectionOf(database, COMMANDS).find(filter, options).toArray();
  const found = await translated(find, LIMITS.databaseOperationMs);
  return found.map((command) => toCommandEvent('object-command-req', command, Number(command.time)));
}

/** Commands that ended. */
async function endEvents(database: Database, ids: readonly ObjectId[], query: PastQuery): Promise<PastEvent[]> {
  if (!wants(query, 'object-command-res', 'object-command-err')) return [];
  const statuses = Object.keys(COMMAND_ENDS).filter((status) => query.names.has(COMMAND_ENDS[status] as PastEventName));
  const pipeline = [
    {
      $match: {
        object: objectsIn(ids),
        status: { $in: statuses },
        _id: givenWithin(query, LIMITS.commandLifetimeMaxMs),
      },
    },
    { $set: { [END_TIME]: { $max: statuses.map((status) => `$times.${status}`) } } },
    { $match: { [END_TIME]: within(query) } },
    ...[{ $sort: { [END_TIME]: 1, _id: 1 } }, { $limit: query.limit + 1 }],
  ];
  const options = { maxTimeMS: LIMITS.databaseOperationMs };
  const find = () => collectionOf(database, COMMANDS).aggregate(pipeline, options).toArray();
  const found = await translated(find, LIMITS.databaseOperationMs);
  return found.map(({ [END_TIME]: endedMs, ...command }) =>
    toCommandEvent(COMMAND_ENDS[command.status] as PastEventName, command, Number(endedMs)),
  );
}

/** The `_id` of a command begins with when it was given, in seconds. */
function givenWithin(query: PastQuery, beforeMs: number): Document {
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

async function updateEvents(database: Database, ids: ReadonlySet<string>, query: PastQuery) {
  if (!wants(query, 'object-update')) return { events: [], readToMs: null };
  const { $gte: fromMs, $lte: toMs } = within(query);
  const timeOf = ({ after }: StreamChange): number => Number(after?._at ?? after?.time ?? 0);
  const isWanted = (change: StreamChange): boolean =>
    change.kind === 'changed' && ids.has(change.id) && changedFields(change).length > 0;
  const asked = { fromMs, toMs, limit: query.limit + 1 };
  const { changes, readToMs } = await readPastUpdates(database, asked, isWanted, timeOf);
  const events = changes.flatMap((change) => {
    const timeMs = timeOf(change);
    if (timeMs < fromMs || timeMs > toMs) return [];
    const data = updatePayload(change, changedFields(change));
    return [toEvent('object-update', data, { timeMs, stampUs: timeMs * 1_000, id: change.id }, change.position)];
  });
  return { events, readToMs };
}

function toEvent(name: PastEventName, data: JsonObject, place: PastPlace, position?: string): PastEvent {
  const told = { event: name, data, time: place.timeMs, ...(position !== undefined && { position }) };
  return Object.assign(place, { json: Buffer.from(JSON.stringify(told)) });
}
