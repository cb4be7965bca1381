/** An object's `state` is its latest packet: found when it is read, so that it is never older than what was acknowledged. */
import { BSON, BSONType, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../model/limits.js';
import { distinctPaths } from '../model/list.js';
import type { Packet } from '../model/packet.js';
import { builtInStore } from '../model/stores.js';
import { findField, readObjectId } from './bson.js';
import type { Database } from './connect.js';
import { projectionOf, toEntity } from './documents.js';
import { PACKET_LAYOUT, PACKETS } from './packets.js';
import { rawBatches, readFirst } from './pages.js';

const OBJECTS = 'objects';
/** The member that holds an object's latest packet where the database tells of it: no object has one of this name. */
const LATEST = '_latest';

/** An object and its latest packet as they are stored. */
export interface ObjectWithState {
  readonly stored: Uint8Array;
  readonly state: Uint8Array | null;
}

/**
 * The object of this `_id` with its state, whoever may see it; null when there is none. Those of one turn are one command:
 * two, side by side, cost the process half as much again, and the database a quarter.
 */
export async function findWithState(database: Database, objectId: string): Promise<ObjectWithState | null> {
  const found = await database.inTurn('objects with state', [objectId], (asked: string[]) =>
    findAllWithState(database, [...new Set(asked)]),
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
  const states = new Map<string, Uint8Array>();
  for await (const { documents } of rawBatches(database, command, LIMITS.databaseAnswerMs)) {
    for (const document of documents) {
      const id = readObjectId(document) ?? '';
      const state = findField(document, LATEST, BSONType.object);
      if (state === null) objects.set(id, document);
      else states.set(id, state);
    }
  }
  return new Map([...objects].map(([id, stored]) => [id, { stored, state: states.get(id) ?? null }]));
}

/** The packet with the greatest `time`, then `_ts`, of each of these objects: one step in the index for each. */
function latestOfEach(ids: readonly ObjectId[]): Document[] {
  return [
    { $match: { _oid: { $in: ids } } },
    { $sort: { _oid: 1, time: 1, _ts: 1 } },
    { $group: { _id: '$_oid', [LATEST]: { $last: '$$ROOT' } } },
  ];
}

/** The latest packets of these objects as BSON, by the object's `_id`. `paths` narrows the packet's fields. */
export async function latestPackets(
  database: Database,
  objectIds: readonly string[],
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  const latest = new Map<string, Uint8Array>();
  if (objectIds.length === 0) return latest;
  const pipeline = latestOfEach(objectIds.map((id) => new ObjectId(id)));
  if (paths !== null) {
    pipeline.push({
      $project: Object.fromEntries(distinctPaths(['_id', ...paths]).map((path) => [`${LATEST}.${path}`, 1])),
    });
  }
  const command = { aggregate: PACKETS, pipeline, cursor: { batchSize: objectIds.length + 1 } };
  const withinMs = objectIds.length > LIMITS.itemsPerTurn ? LIMITS.databaseOperationMs : LIMITS.databaseAnswerMs;
  for await (const { documents } of rawBatches(database, command, withinMs)) {
    for (const document of documents) {
      const packet = findField(document, LATEST, BSONType.object);
      if (packet !== null) latest.set(readObjectId(document) ?? '', packet);
    }
  }
  return latest;
}

/** The latest packet of one object as BSON, or null; those of one turn are one command. */
export async function latestPacket(database: Database, objectId: string): Promise<Uint8Array | null> {
  const latest = await database.inTurn('latest', [objectId], (asked: string[]) => {
    const ids = [...new Set(asked)];
    return ids.length === 1 ? latestOf(database, objectId) : latestPackets(database, ids, null);
  });
  return latest.get(objectId) ?? null;
}

/** The same of one object: a plain question costs the database half as much as one for groups. */
async function latestOf(database: Database, objectId: string): Promise<Map<string, Uint8Array>> {
  const filter = { _oid: new ObjectId(objectId) };
  const packet = await readFirst(database, { find: PACKETS, filter, sort: { time: -1, _ts: -1 } });
  return new Map(packet === null ? [] : [[objectId, packet]]);
}

/** The latest packet of one object, or null. */
export async function readState(database: Database, objectId: string): Promise<Packet | null> {
  const found = await latestPacket(database, objectId);
  return found === null ? null : (toEntity(PACKET_LAYOUT, BSON.deserialize(found)) as unknown as Packet);
}
