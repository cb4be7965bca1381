/** Finds the times of the latest packets of many objects with one query. */
import { LIMITS } from '../core/limits.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import { readShownId } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { findBounds, groupByBound } from './ahead.js';
import { type LatestReading, readLatest } from './store/latest-packets.js';

/** The latest packet of an object, with or without data. */
export interface LastPacketTime {
  readonly packetId: string;
  readonly timeMs: number;
  readonly storedAtMs: number;
  readonly isOnline: boolean;
  /** Whether it is more than a report of presence. */
  readonly hasData: boolean;
}

/** By the object's `_id`, without objects that have no packets. */
export async function findLastPacketTimes(
  database: Database,
  objectIds: readonly string[],
): Promise<Map<string, LastPacketTime>> {
  const found = new Map<string, LastPacketTime>();
  if (objectIds.length === 0) return found;
  await addTimes(database, { objectIds, boundMs: null }, found);
  const bounds = await findBounds(database, new Map([...found].map(([id, { timeMs }]) => [id, timeMs])));
  for (const { ids, boundMs } of groupByBound([...bounds.keys()], bounds)) {
    for (const id of ids) found.delete(id);
    await addTimes(database, { objectIds: ids, boundMs }, found);
  }
  return found;
}

async function addTimes(
  database: Database,
  objects: Pick<LatestReading, 'objectIds' | 'boundMs'>,
  found: Map<string, LastPacketTime>,
): Promise<void> {
  const reading = { ...objects, fields: ['_ts'] };
  for await (const some of readLatest(database, reading, { withinMs: LIMITS.databaseOperationMs })) {
    for (const { objectId, packet, facts } of some) {
      if (facts === null) continue;
      found.set(objectId, {
        packetId: readShownId(packet) ?? '',
        timeMs: facts.timeMs,
        storedAtMs: Math.floor(readNumber(packet, 0, '_ts') / 1_000),
        isOnline: facts.online?.[0] !== 0,
        hasData: facts.hasData,
      });
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
