/**
 * An object's `state` is its last packet with data, with `online` from its latest packet. It is computed when it is read, so that
 * it is never older than an acknowledged packet.
 */
import { type Binary, BSON, BSONType, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { distinctPaths } from '../core/list.js';
import { PRESENCE_FIELDS } from '../core/packet-fields.js';
import { builtInStore } from '../core/stores.js';
import { rawBatches } from '../platform/mongo/bson/raw-batches.js';
import { readFirst } from '../platform/mongo/bson/raw-cursor.js';
import { findField, hasOthers, readObjectId } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { projectionOf, toEntity } from '../platform/mongo/schema/mapping.js';
import type { Packet } from './packet.js';
import { PACKET_LAYOUT, PACKETS } from './packets.js';

const OBJECTS = 'objects';
/** Members of intermediate results: the latest packet of an object, and facts about it. No object has members of these names. */
const FOUND = '_found';
const ONLINE = '_online';
const HAS_DATA = '_hasData';

/** An object and its state as they are stored. */
export interface ObjectWithState {
  readonly stored: Uint8Array;
  readonly state: Uint8Array | null;
}

/**
 * Finds an object with its state, without a permission check. Calls in one iteration of the event loop share a command: separate
 * commands for object and state would cost the process half as much again, and the database a quarter.
 */
export async function findWithState(database: Database, objectId: string): Promise<ObjectWithState | null> {
  const found = await database.batch('objects with state', [objectId], (ids: string[]) =>
    findAllWithState(database, [...new Set(ids)]),
  );
  return found.get(objectId) ?? null;
}

async function findAllWithState(
  database: Database,
  objectIds: readonly string[],
): Promise<Map<string, ObjectWithState>> {
  const ids = objectIds.map((id) => new ObjectId(id));
  const projection = projectionOf(builtInStore(OBJECTS), null);
  const pipeline: Document[] = [
    { $match: { _id: { $in: ids } } },
    ...(projection === undefined ? [] : [{ $project: projection }]),
    { $unionWith: { coll: PACKETS, pipeline: latestOfEach(ids) } },
  ];
  const command = { aggregate: OBJECTS, pipeline, cursor: { batchSize: 2 * ids.length + 1 } };
  const objects = new Map<string, Uint8Array>();
  const latest = new Latest();
  for await (const { documents } of rawBatches(database, command, { withinMs: LIMITS.databaseAnswerMs })) {
    for (const document of documents)
      if (!latest.addResult(document)) objects.set(readObjectId(document) ?? '', document);
  }
  const states = await withData(database, latest, null);
  return new Map([...objects].map(([id, stored]) => [id, { stored, state: states.get(id) ?? null }]));
}

/** Finds the packet of each object with the greatest `time`, then `_ts`, reading one index key per object. */
function latestOfEach(ids: readonly ObjectId[]): Document[] {
  return [
    { $match: { _oid: { $in: ids } } },
    { $sort: { _oid: 1, time: 1, _ts: 1 } },
    { $group: { _id: '$_oid', [FOUND]: { $last: '$$ROOT' } } },
  ];
}

/** Collects latest packets. A class for speed: every read of an object creates one (docs/development.md). */
class Latest {
  readonly packets = new Map<string, Uint8Array>();
  /** The value of `online`, for objects whose latest packet has no data. */
  readonly online = new Map<string, boolean>();

  /** Adds a result of a query; returns false when it holds no packet. */
  addResult(document: Buffer): boolean {
    const packet = findField(document, FOUND, BSONType.object);
    if (packet === null) return false;
    // For a projected packet, the query computed these from all of its fields.
    const hasData = findField(document, HAS_DATA, BSONType.bool);
    const online = findField(document, ONLINE, BSONType.bool);
    this.add(readObjectId(document) ?? '', packet, hasData === null ? null : { hasData: hasData[0] === 1, online });
    return true;
  }

  add(objectId: string, packet: Buffer, known: { hasData: boolean; online: Buffer | null } | null = null): void {
    this.packets.set(objectId, packet);
    if (known?.hasData ?? hasOthers(packet, PRESENCE_FIELDS)) return;
    const online = known?.online ?? findField(packet, 'online', BSONType.bool);
    this.online.set(objectId, online?.[0] !== 0);
  }
}

/** The states: a latest packet without data passes its `online` to the last packet with data. */
async function withData(
  database: Database,
  { packets, online }: Latest,
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  if (online.size === 0) return packets;
  for (const [id, packet] of await findData(database, [...online.keys()], paths)) {
    const field = findField(packet, 'online', BSONType.bool);
    if (field !== null) field[0] = online.get(id) ? 1 : 0;
    packets.set(id, packet);
  }
  return packets;
}

/** An expression: whether a packet has more than the fields of every packet. */
const holdsData = (packet: string): Document => ({
  $ne: [
    { $setDifference: [{ $map: { input: { $objectToArray: packet }, in: '$$this.k' } }, [...PRESENCE_FIELDS]] },
    [],
  ],
});

/** How many packets the first query searches. */
const FIRST_SEARCH = 8;

/** The last packets with data, among the latest `statePackets` of each object. */
async function findData(
  database: Database,
  objectIds: readonly string[],
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  // Nearly always the second or third latest packet has data.
  for (const limit of [FIRST_SEARCH, LIMITS.statePackets]) {
    const left = objectIds.filter((id) => !found.has(id)).map((id) => new ObjectId(id));
    if (left.length === 0) break;
    const command = { ...dataCommand(left, limit, paths), cursor: { batchSize: left.length + 1 } };
    for await (const { documents } of rawBatches(database, command, { withinMs: withinMs(left.length) })) {
      for (const document of documents) {
        const packet = findField(document, FOUND, BSONType.object);
        if (packet !== null) found.set(readObjectId(document) ?? '', packet);
      }
    }
  }
  return found;
}

function dataCommand(ids: readonly ObjectId[], limit: number, paths: readonly string[] | null): Document {
  const lookBack: Document[] = [
    { $sort: { time: -1, _ts: -1 } },
    { $limit: limit },
    { $match: { $expr: holdsData('$$ROOT') } },
    { $limit: 1 },
    ...(paths === null
      ? []
      : [{ $project: Object.fromEntries(distinctPaths(['_id', ...paths]).map((path) => [path, 1])) }]),
  ];
  const [first, ...others] = ids;
  // For one object, this pipeline costs the database half as much.
  if (others.length === 0) {
    const wrap = { $replaceWith: { _id: first, [FOUND]: '$$ROOT' } };
    return { aggregate: PACKETS, pipeline: [{ $match: { _oid: first } }, ...lookBack, wrap] };
  }
  const lookUp = { from: PACKETS, localField: '_id', foreignField: '_oid', pipeline: lookBack, as: FOUND };
  const pipeline = [
    { $match: { _id: { $in: ids } } },
    { $project: { _id: 1 } },
    { $lookup: lookUp },
    { $unwind: `$${FOUND}` },
  ];
  return { aggregate: OBJECTS, pipeline };
}

const withinMs = (objects: number): number =>
  objects > LIMITS.itemsPerTurn ? LIMITS.databaseOperationMs : LIMITS.databaseAnswerMs;

/** The latest packets of these objects. */
async function findLatest(
  database: Database,
  objectIds: readonly string[],
  paths: readonly string[] | null,
): Promise<Latest> {
  const latest = new Latest();
  const [first, ...others] = objectIds;
  if (first === undefined) return latest;
  // For one object, a find costs the database half as much as an aggregation.
  if (others.length === 0 && paths === null) {
    const filter = { _oid: new ObjectId(first) };
    const packet = await readFirst(database, { find: PACKETS, filter, sort: { time: -1, _ts: -1 } });
    if (packet !== null) latest.add(first, packet);
    return latest;
  }
  const pipeline = latestOfEach(objectIds.map((id) => new ObjectId(id)));
  if (paths !== null) {
    const shown = distinctPaths(['_id', ...paths]).map((path) => [`${FOUND}.${path}`, 1]);
    const known = { [ONLINE]: `$${FOUND}.online`, [HAS_DATA]: holdsData(`$${FOUND}`) };
    pipeline.push({ $project: Object.assign(Object.fromEntries(shown), known) });
  }
  const command = { aggregate: PACKETS, pipeline, cursor: { batchSize: objectIds.length + 1 } };
  for await (const { documents } of rawBatches(database, command, { withinMs: withinMs(objectIds.length) })) {
    for (const document of documents) latest.addResult(document);
  }
  return latest;
}

/** The states of these objects as BSON, by the object's `_id`. `paths` restricts the fields. */
export async function findStates(
  database: Database,
  objectIds: readonly string[],
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  return withData(database, await findLatest(database, objectIds, paths), paths);
}

/** The keys of the packets that each object keeps whatever their age: the latest packet, and the one of its state. */
export async function findKept(database: Database, objectIds: readonly string[]): Promise<Map<string, Binary[]>> {
  const latest = await findLatest(database, objectIds, null);
  const keyOf = (packet: Uint8Array): Binary => BSON.deserialize(packet)._id;
  const kept = new Map([...latest.packets].map(([id, packet]) => [id, [keyOf(packet)]]));
  for (const [id, packet] of await withData(database, latest, null)) kept.get(id)?.push(keyOf(packet));
  return kept;
}

/** The state of one object as BSON; calls in one iteration of the event loop share a command. */
export async function findState(database: Database, objectId: string): Promise<Uint8Array | null> {
  const states = await database.batch('states', [objectId], (ids: string[]) =>
    findStates(database, [...new Set(ids)], null),
  );
  return states.get(objectId) ?? null;
}

export async function readState(database: Database, objectId: string): Promise<Packet | null> {
  return toPacket(await findState(database, objectId));
}

const toPacket = (packet: Uint8Array | null): Packet | null =>
  packet === null ? null : (toEntity(PACKET_LAYOUT, BSON.deserialize(packet)) as unknown as Packet);
