/**
 * Which packets of each object were removed last, for readers of long histories: without a mark, one could not tell a packet that
 * was removed before it was read from one that never was. A step of a removal is marked before its packets go.
 */
import { type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

/** The times of the removed packets, both included. */
export interface RemovedInterval {
  readonly fromMs: number;
  readonly toMs: number;
}

interface Marks extends Document {
  readonly _id: ObjectId;
  /** The number of steps so far, and the last of them. */
  readonly steps: number;
  readonly last: readonly RemovedInterval[];
}

const marksIn = ({ db }: Database) => db.collection<Marks>('removalMarks');

/** Marks that packets with these times are removed. */
export async function markRemoval(database: Database, objectId: string, times: readonly number[]): Promise<void> {
  const interval = { fromMs: Math.min(...times), toMs: Math.max(...times) };
  const update = [
    {
      $set: {
        steps: { $add: [{ $ifNull: ['$steps', 0] }, 1] },
        last: { $slice: [{ $concatArrays: [{ $ifNull: ['$last', []] }, [interval]] }, -LIMITS.removalsMarked] },
        expires: { $add: ['$$NOW', LIMITS.removedPlaceMs] },
      },
    },
  ];
  await mapDriverErrors(() => marksIn(database).updateOne({ _id: new ObjectId(objectId) }, update, { upsert: true }));
}

/** Tells which packets of an object were removed since the last call. */
export interface RemovalWatch {
  /** The removed intervals; null when they are too many to know. */
  read(): Promise<readonly RemovedInterval[] | null>;
}

export async function watchRemovals(database: Database, objectId: string): Promise<RemovalWatch> {
  const find = () => mapDriverErrors(() => marksIn(database).findOne({ _id: new ObjectId(objectId) }));
  let known = (await find())?.steps ?? 0;
  return {
    async read() {
      const marks = await find();
      const more = (marks?.steps ?? 0) - known;
      known = marks?.steps ?? 0;
      if (marks === null || more === 0) return [];
      // Marks that expired meanwhile count anew.
      return more > 0 && more <= marks.last.length ? marks.last.slice(-more) : null;
    },
  };
}
