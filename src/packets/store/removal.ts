/** Removes packets, and finds those that have become old. */
import type { Binary, Document, ObjectId } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import { clock } from '../../platform/clock.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import { markRemoval } from '../removal-marks.js';
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
}

/**
 * Removes packets in short steps, with pauses as long as the steps, to keep the load on the database low. Returns their number.
 */
export async function removePacketsOf(
  database: Database,
  { objectId, which, signal, keepsPlaces = false }: PacketRemoval,
): Promise<number> {
  const packets = database.db.collection(PACKETS);
  const options = { projection: { time: 1 }, limit: LIMITS.packetsPerRemoval };
  const found =
    which === 'all' ? toFilter({ objectIds: [objectId] }) : toBoundedFilter({ objectIds: [objectId], ...which });
  for (let removed = 0; ; ) {
    const startMs = clock.steadyMs();
    const some = await mapDriverErrors(() => packets.find(found, options).toArray());
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

/** Reads one index key per object with packets, including removed objects. */
export async function* readOldest({ db }: Database): AsyncGenerator<OldestPacket[]> {
  const pipeline: Document[] = [
    { $sort: { _oid: 1, time: 1, _ts: 1 } },
    { $group: { _id: '$_oid', key: { $first: '$_id' }, time: { $first: '$time' } } },
  ];
  const cursor = db.collection(PACKETS).aggregate<OldestPacket>(pipeline, { batchSize: LIMITS.sweepBatch });
  try {
    while (await mapDriverErrors(() => cursor.hasNext(), null)) yield cursor.readBufferedDocuments();
  } finally {
    await cursor.close();
  }
}
