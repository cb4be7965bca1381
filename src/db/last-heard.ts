/** When objects were last heard of: the few fields of their latest packets that say so, of many objects in one question. */
import { BSON, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../model/limits.js';
import type { Database } from './connect.js';
import { packetIdIn } from './packet-key.js';
import { PACKETS } from './packets.js';
import { rawBatches } from './pages.js';

/** The latest packet of an object, whatever it holds. */
export interface LastHeard {
  readonly packetId: string;
  readonly timeMs: number;
  /** When it was stored. */
  readonly storedAtMs: number;
  readonly isOnline: boolean;
}

/** The latest packets of these objects, those that have one, by the object's `_id`. */
export async function findLastHeard(database: Database, objectIds: readonly string[]): Promise<Map<string, LastHeard>> {
  const found = new Map<string, LastHeard>();
  if (objectIds.length === 0) return found;
  const pipeline: Document[] = [
    { $match: { _oid: { $in: objectIds.map((id) => new ObjectId(id)) } } },
    // One step in the index for each object.
    { $sort: { _oid: 1, time: 1, _ts: 1 } },
    { $group: { _id: '$_oid', ...last('packet', '_id'), ...last('time'), ...last('_ts'), ...last('online') } },
  ];
  const command = { aggregate: PACKETS, pipeline, cursor: { batchSize: objectIds.length + 1 } };
  for await (const { documents } of rawBatches(database, command, LIMITS.databaseOperationMs)) {
    for (const document of documents) {
      const { _id, packet, time, _ts, online } = BSON.deserialize(document);
      const heard = { packetId: packetIdIn(packet), timeMs: Number(time), storedAtMs: Math.floor(Number(_ts) / 1_000) };
      found.set(String(_id), Object.assign(heard, { isOnline: online !== false }));
    }
  }
  return found;
}

const last = (name: string, field = name): Document => ({ [name]: { $last: `$${field}` } });

/** The same of one object, or null; those asked for in one turn are one command. */
export async function readLastHeard(database: Database, objectId: string): Promise<LastHeard | null> {
  const found = await database.inTurn('last heard', [objectId], (asked: string[]) =>
    findLastHeard(database, [...new Set(asked)]),
  );
  return found.get(objectId) ?? null;
}
