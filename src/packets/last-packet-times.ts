/** Finds the times of the latest packets of many objects with one query. */
import { BSON, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { packetIdIn } from '../platform/mongo/bson/packet-key.js';
import { rawBatches } from '../platform/mongo/bson/raw-batches.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findBounds, groupByBound } from './ahead.js';
import { FOUND, holdsData, lookBack } from './look-back.js';
import { PACKETS } from './store/query.js';

/** The latest packet of an object, with or without data. */
export interface LastPacketTime {
  readonly packetId: string;
  readonly timeMs: number;
  readonly storedAtMs: number;
  readonly isOnline: boolean;
  /** Whether it is more than a report of presence. */
  readonly hasData: boolean;
}

/** A stage that keeps of a packet what is returned here. */
const FACTS: Document = {
  $project: {
    packet: `$${FOUND}._id`,
    time: `$${FOUND}.time`,
    _ts: `$${FOUND}._ts`,
    online: `$${FOUND}.online`,
    hasData: holdsData(`$${FOUND}`),
  },
};

/** By the object's `_id`, without objects that have no packets. */
export async function findLastPacketTimes(
  database: Database,
  objectIds: readonly string[],
): Promise<Map<string, LastPacketTime>> {
  const found = new Map<string, LastPacketTime>();
  if (objectIds.length === 0) return found;
  const pipeline: Document[] = [
    { $match: { _oid: { $in: objectIds.map((id) => new ObjectId(id)) } } },
    // This pipeline reads one index key per object.
    { $sort: { _oid: 1, time: 1, _ts: 1 } },
    { $group: { _id: '$_oid', [FOUND]: { $last: '$$ROOT' } } },
    FACTS,
  ];
  const command = { aggregate: PACKETS, pipeline, cursor: { batchSize: objectIds.length + 1 } };
  await addTimes(database, command, found);
  const bounds = await findBounds(database, new Map([...found].map(([id, { timeMs }]) => [id, timeMs])));
  for (const group of groupByBound([...bounds.keys()], bounds)) {
    for (const id of group.ids) found.delete(id);
    const before = lookBack(group, [{ $limit: 1 }]);
    before.pipeline.push(FACTS);
    await addTimes(database, before, found);
  }
  return found;
}

async function addTimes(database: Database, command: Document, found: Map<string, LastPacketTime>): Promise<void> {
  for await (const { documents } of rawBatches(database, command, { withinMs: LIMITS.databaseOperationMs })) {
    for (const document of documents) {
      const { _id, packet, time, _ts, online, hasData } = BSON.deserialize(document);
      const latest = {
        packetId: packetIdIn(packet),
        timeMs: Number(time),
        storedAtMs: Math.floor(Number(_ts) / 1_000),
      };
      found.set(String(_id), Object.assign(latest, { isOnline: online !== false, hasData }));
    }
  }
}

/** The latest packet of one object; calls in one iteration of the event loop share a query. */
export async function readLastPacketTimes(database: Database, objectId: string): Promise<LastPacketTime | null> {
  const found = await database.batch('last packet times', [objectId], (ids: string[]) =>
    findLastPacketTimes(database, [...new Set(ids)]),
  );
  return found.get(objectId) ?? null;
}
