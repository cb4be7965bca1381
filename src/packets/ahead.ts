/**
 * Packets further ahead than a clock may be, which earlier versions stored, or which came before the server's clock was set back. They
 * are a part of the history, but not of the present: the state, latest values and presence are those before them.
 */
import { BSON, type Document, ObjectId } from 'mongodb';
import { rawBatches } from '../platform/mongo/bson/raw-batches.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { aheadMsOf } from './models.js';

/** Up to which time the packets of an object count, for objects with later ones. */
export type Bounds = ReadonlyMap<string, number>;

export const NO_BOUNDS: Bounds = new Map();

/** `latestMs`: the time of each object's latest packet. Nearly always, there are no bounds, and nothing is read. */
export async function findBounds(database: Database, latestMs: ReadonlyMap<string, number>): Promise<Bounds> {
  const { now, aheadMs } = database.clock;
  const nowMs = now();
  const ahead = [...latestMs].filter(([, timeMs]) => timeMs > nowMs + aheadMs);
  if (ahead.length === 0) return NO_BOUNDS;
  const ids = ahead.map(([id]) => id);
  const permitted = await findPermitted(database, ids);
  const bounds = new Map<string, number>();
  for (const [id, timeMs] of ahead) {
    const boundMs = nowMs + (permitted.get(id) ?? aheadMs);
    if (timeMs > boundMs) bounds.set(id, boundMs);
  }
  return bounds;
}

/** How far the packets of objects may be ahead, where a model says so. */
async function findPermitted(database: Database, objectIds: readonly string[]): Promise<Map<string, number>> {
  const pipeline: Document[] = [
    { $match: { _id: { $in: objectIds.map((id) => new ObjectId(id)) } } },
    { $lookup: { from: 'models', localField: 'model', foreignField: '_id', as: 'models' } },
    { $project: { timeAhead: { $first: '$models.timeAhead' } } },
  ];
  const command = { aggregate: 'objects', pipeline, cursor: { batchSize: objectIds.length + 1 } };
  const permitted = new Map<string, number>();
  for await (const { documents } of rawBatches(database, command)) {
    for (const document of documents) {
      const { _id, timeAhead } = BSON.deserialize(document);
      permitted.set(String(_id), aheadMsOf(database, timeAhead));
    }
  }
  return permitted;
}

/** Objects whose packets count up to the same time; null for all packets. */
export interface BoundedObjects {
  readonly boundMs: number | null;
  readonly ids: readonly string[];
}

export function groupByBound(ids: readonly string[], bounds: Bounds): BoundedObjects[] {
  const groups = new Map<number | null, string[]>();
  for (const id of ids) {
    const boundMs = bounds.get(id) ?? null;
    const group = groups.get(boundMs);
    if (group === undefined) groups.set(boundMs, [id]);
    else group.push(id);
  }
  return [...groups].map(([boundMs, grouped]) => ({ boundMs, ids: grouped }));
}
