/**
 * An object's `state` is its last packet with data, with `online` from its latest packet. It is computed when it is read, so that
 * it is never older than an acknowledged packet.
 */
import { type Binary, BSON, BSONType, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { distinctPaths } from '../core/list.js';
import { PACKET_FIELDS, PRESENCE_FIELDS } from '../core/packet-fields.js';
import { builtInStore } from '../core/stores.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import { rawBatches } from '../platform/mongo/bson/raw-batches.js';
import { readFirst } from '../platform/mongo/bson/raw-cursor.js';
import { findField, hasOthers, readObjectId } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { projectionOf, toEntity } from '../platform/mongo/schema/mapping.js';
import { type BoundedObjects, type Bounds, findBounds, groupByBound, NO_BOUNDS } from './ahead.js';
import { FOUND, findFarBackMs, holdsData, lookBack } from './look-back.js';
import type { Packet } from './packet.js';
import { PACKET_LAYOUT, PACKETS } from './store/query.js';

const OBJECTS = 'objects';
/** Members of intermediate results beside the latest packet of an object: facts about it. */
const TIME = '_time';
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
  await leaveOutAhead(database, latest, null);
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

/** What a query found out about a packet. */
interface KnownFacts {
  readonly hasData: boolean;
  readonly online: Buffer | null;
  readonly timeMs: number;
}

/** Collects latest packets. A class for speed: every read of an object creates one (docs/development.md). */
class Latest {
  readonly packets = new Map<string, Uint8Array>();
  /** The value of `online`, for objects whose latest packet has no data. */
  readonly online = new Map<string, boolean>();
  readonly timesMs = new Map<string, number>();
  /** For objects with packets ahead of time. */
  bounds: Bounds = NO_BOUNDS;

  /** Adds a result of a query; returns false when it holds no packet. */
  addResult(document: Buffer): boolean {
    const packet = findField(document, FOUND, BSONType.object);
    if (packet === null) return false;
    // For a projected packet, the query computed these from all of its fields.
    const hasData = findField(document, HAS_DATA, BSONType.bool);
    const online = findField(document, ONLINE, BSONType.bool);
    const timeMs = readNumber(document, 0, TIME);
    this.add(readObjectId(document) ?? '', packet, hasData && { hasData: hasData[0] === 1, online, timeMs });
    return true;
  }

  add(objectId: string, packet: Buffer, known: KnownFacts | null = null): void {
    this.packets.set(objectId, packet);
    this.timesMs.set(objectId, known?.timeMs ?? readNumber(packet, 0, 'time'));
    if (known?.hasData ?? hasOthers(packet, PRESENCE_FIELDS)) return;
    const online = known?.online ?? findField(packet, 'online', BSONType.bool);
    this.online.set(objectId, online?.[0] !== 0);
  }
}

/** Replaces packets that are further ahead than they may be by the latest ones before them. */
async function leaveOutAhead(database: Database, latest: Latest, paths: readonly string[] | null): Promise<void> {
  latest.bounds = await findBounds(database, latest.timesMs);
  for (const group of groupByBound([...latest.bounds.keys()], latest.bounds)) {
    for (const id of group.ids) for (const found of [latest.packets, latest.online]) found.delete(id);
    const command = lookBack(group, [{ $limit: 1 }]);
    if (paths !== null) command.pipeline.push(factsAnd(paths));
    const bound = { withinMs: withinMs(group.ids.length) };
    for await (const { documents } of rawBatches(database, command, bound)) {
      for (const document of documents) latest.addResult(document);
    }
  }
}

/** The states: a latest packet without data passes its `online` to the last packet with data. */
async function withData(
  database: Database,
  { packets, online, bounds }: Latest,
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  if (online.size === 0) return packets;
  for (const [id, packet] of await findData(database, groupByBound([...online.keys()], bounds), paths)) {
    const field = findField(packet, 'online', BSONType.bool);
    if (field !== null) field[0] = online.get(id) ? 1 : 0;
    packets.set(id, packet);
  }
  return packets;
}

/** How many packets the first query searches. */
const FIRST_SEARCH = 8;

/** The last packets with data, among the latest `statePackets` of each object, and then among a few that are far back. */
async function findData(
  database: Database,
  groups: readonly BoundedObjects[],
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>();
  const farBack = findFarBackMs(database.clock.now()).map((boundMs) => ({ boundMs, limit: FIRST_SEARCH }));
  for (const { ids, boundMs } of groups) {
    // Nearly always the second or third latest packet has data.
    const usual = [FIRST_SEARCH, LIMITS.statePackets].map((limit) => ({ boundMs, limit }));
    for (const search of [...usual, ...farBack]) {
      const left = ids.filter((id) => !found.has(id));
      if (left.length === 0) break;
      const command = lookBack({ ids: left, boundMs: search.boundMs }, dataSearch(search.limit, paths));
      for await (const { documents } of rawBatches(database, command, { withinMs: withinMs(left.length) })) {
        for (const document of documents) {
          const packet = findField(document, FOUND, BSONType.object);
          if (packet !== null) found.set(readObjectId(document) ?? '', packet);
        }
      }
    }
  }
  return found;
}

const dataSearch = (limit: number, paths: readonly string[] | null): Document[] => [
  { $limit: limit },
  // Nearly all that has no data is found by the number of its fields, in a quarter of the time.
  { $match: { $expr: { $gt: [{ $size: { $objectToArray: '$$ROOT' } }, PACKET_FIELDS.length] } } },
  { $match: { $expr: holdsData('$$ROOT') } },
  { $limit: 1 },
  ...(paths === null
    ? []
    : [{ $project: Object.fromEntries(distinctPaths(['_id', ...paths]).map((path) => [path, 1])) }]),
];

/** A stage that restricts the packets of results to these paths, and adds what is needed of all others. */
function factsAnd(paths: readonly string[]): Document {
  const shown = distinctPaths(['_id', ...paths]).map((path) => [`${FOUND}.${path}`, 1]);
  const facts = { [TIME]: `$${FOUND}.time`, [ONLINE]: `$${FOUND}.online`, [HAS_DATA]: holdsData(`$${FOUND}`) };
  return { $project: Object.assign(Object.fromEntries(shown), facts) };
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
    await leaveOutAhead(database, latest, paths);
    return latest;
  }
  const pipeline = latestOfEach(objectIds.map((id) => new ObjectId(id)));
  if (paths !== null) pipeline.push(factsAnd(paths));
  const command = { aggregate: PACKETS, pipeline, cursor: { batchSize: objectIds.length + 1 } };
  for await (const { documents } of rawBatches(database, command, { withinMs: withinMs(objectIds.length) })) {
    for (const document of documents) latest.addResult(document);
  }
  await leaveOutAhead(database, latest, paths);
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
