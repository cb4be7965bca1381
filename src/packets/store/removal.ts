/** Removes packets, and finds those that have become old. */
import type { Binary, Document, Filter, ObjectId } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import { clock } from '../../platform/clock.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import { markRemoval } from '../removal-marks.js';
import { keepLatestInRows, removeBucketsOf } from './bucket-removal.js';
import { BUCKETS } from './buckets.js';
import { PACKETS, type PacketQuery, toBoundedFilter, toFilter } from './query.js';
import { keepPlaces } from './removed-places.js';

export interface PacketRemoval {
  readonly objectId: string;
  /** Which of its packets: all only where that is said, so that bounds that are missing by mistake remove nothing. */
  readonly which: 'all' | Pick<PacketQuery, 'time' | 'stamps' | 'exceptKeys'>;
  /** Ends the removal early. */
  readonly signal?: AbortSignal;
  /** Whether clients can still continue after the removed packets. */
  readonly keepsPlaces?: boolean;
  /** Buckets of which some packets stay wait, unless they begin before this time. */
  readonly cutsBeforeMs?: number;
}

/**
 * Removes packets in short steps, with pauses as long as the steps, to keep the load on the database low. Returns their number.
 */
export async function removePacketsOf(database: Database, removal: PacketRemoval): Promise<number> {
  const { objectId, which, signal, keepsPlaces = false, cutsBeforeMs } = removal;
  const filter =
    which === 'all' ? toFilter({ objectIds: [objectId] }) : toBoundedFilter({ objectIds: [objectId], ...which });
  const buckets = { objectId, which: which === 'all' ? {} : which, keepsPlaces };
  const cuts = cutsBeforeMs === undefined ? {} : { cutsBeforeMs };
  const ends = signal === undefined ? {} : { signal };
  for (let removed = 0; ; ) {
    const packed = await removeBucketsOf(database, { ...buckets, ...cuts, ...ends });
    removed += packed.removed;
    // Packets that are kept by name are rows, or in buckets that became rows.
    const isAll = which === 'all' || which.exceptKeys !== undefined;
    if (!isAll && !signal?.aborted) await keepLatestInRows(database, { ...buckets, ...ends });
    if (signal?.aborted) return removed;
    const rows = await removeRows(database, removal, filter);
    removed += rows;
    // Rows may have been packed meanwhile.
    if (signal?.aborted || (packed.removed + packed.unpacked === 0 && rows === 0)) return removed;
  }
}

async function removeRows(
  database: Database,
  { objectId, signal, keepsPlaces = false }: PacketRemoval,
  filter: Filter<Document>,
): Promise<number> {
  const packets = database.db.collection(PACKETS);
  const options = { projection: { time: 1 }, limit: LIMITS.packetsPerRemoval };
  for (let removed = 0; ; ) {
    const startMs = clock.steadyMs();
    const some = await mapDriverErrors(() => packets.find(filter, options).toArray());
    if (some.length === 0) return removed;
    const these = { _id: { $in: some.map(({ _id }) => _id) } };
    await markRemoval(
      database,
      objectId,
      some.map(({ time }) => time),
    );
    if (keepsPlaces) await keepPlaces(database, these);
    removed += (await mapDriverErrors(() => packets.deleteMany(these))).deletedCount;
    if (some.length < options.limit || signal?.aborted) return removed;
    await clock.wait(clock.steadyMs() - startMs, { signal }).catch(() => undefined);
  }
}

/** The oldest packet of an object; `_id` is the object's. */
export interface OldestPacket {
  readonly _id: ObjectId;
  readonly key: Binary;
  readonly time: number;
}

/** Reads one index key per object with rows, including removed objects. */
export const readOldest = ({ db }: Database): AsyncGenerator<OldestPacket[]> =>
  readFirstOfEach(db, PACKETS, [
    { $sort: { _oid: 1, time: 1, _ts: 1 } },
    { $group: { _id: '$_oid', key: { $first: '$_id' }, time: { $first: '$time' } } },
  ]);

/** The oldest bucket of an object, with the times of its first and its last packet; `_id` is the object's. */
export interface OldestBucket {
  readonly _id: ObjectId;
  readonly time: number;
  readonly lastTime: number;
}

/** Reads the index of buckets alone. Buckets whose packets are still rows count, too: their object may be removed. */
export const readOldestBuckets = ({ db }: Database): AsyncGenerator<OldestBucket[]> =>
  readFirstOfEach(db, BUCKETS, [
    { $sort: { _oid: 1, isPending: 1, 'to.time': 1, 'to.stamp': 1 } },
    { $group: { _id: '$_oid', time: { $first: '$from.time' }, lastTime: { $first: '$to.time' } } },
  ]);

async function* readFirstOfEach<T extends Document>(
  db: Database['db'],
  collection: string,
  pipeline: readonly Document[],
): AsyncGenerator<T[]> {
  const cursor = db.collection(collection).aggregate<T>([...pipeline], { batchSize: LIMITS.sweepBatch });
  try {
    while (await mapDriverErrors(() => cursor.hasNext(), null)) yield cursor.readBufferedDocuments();
  } finally {
    await cursor.close();
  }
}
