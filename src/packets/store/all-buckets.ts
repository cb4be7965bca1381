/** All packed history of an installation, bucket by bucket: to turn it into rows, or to check it. */
import type { Binary, ObjectId } from 'mongodb';
import { DamagedBucketError, unpack } from '../../packed/unpack.js';
import { rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { readObjectId } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import { BUCKETS, toBucket, toKeyedRow } from './buckets.js';
import { type Fence, unpackBucket } from './packing.js';

/** A bucket from which not all of its packets can be read. */
export interface DamagedHistory {
  readonly objectId: string;
  /** A sentence that names its interval. */
  readonly reason: string;
}

export interface CheckedHistory {
  readonly buckets: number;
  readonly packets: number;
}

/** Reads every bucket as a reader of all of its packets does, and calls back for each that is damaged. */
export async function checkBuckets(
  database: Database,
  onDamaged: (damaged: DamagedHistory) => void,
): Promise<CheckedHistory> {
  const checked = { buckets: 0, packets: 0 };
  // A few MiB of buckets at a time.
  const command = { find: BUCKETS, filter: { isPending: false }, batchSize: BATCH_BUCKETS };
  for await (const { documents } of rawBatches(database, command)) {
    for (const document of documents) {
      checked.buckets++;
      try {
        checked.packets += packetsIn(document);
      } catch (error) {
        if (!(error instanceof DamagedBucketError)) throw error;
        onDamaged({ objectId: readObjectId(document, '_oid') ?? '', reason: error.message });
      }
    }
  }
  return checked;
}

const BATCH_BUCKETS = 100;

function packetsIn(document: Buffer): number {
  const bucket = toBucket(document);
  const rows = unpack(bucket);
  const isWhole = rows.length === bucket.packets && rows.every((row) => toKeyedRow(row) !== null);
  if (!isWhole) throw new DamagedBucketError(bucket, new Error('it has other packets than it says'));
  return rows.length;
}

/** Turns all buckets into rows, and removes those that do not count. Calls back for each that is damaged, and leaves it. */
export async function unpackAll(
  database: Database,
  { fence, onDamaged }: { readonly fence: Fence; readonly onDamaged: (damaged: DamagedHistory) => void },
): Promise<CheckedHistory> {
  const unpacked = { buckets: 0, packets: 0 };
  const buckets = database.db.collection<{ _id: Binary; _oid: ObjectId }>(BUCKETS);
  await mapDriverErrors(() => buckets.deleteMany({ isPending: true }));
  const cursor = buckets.find({ isPending: false }, { projection: { _oid: 1 }, sort: { _id: 1 } });
  for await (const { _id, _oid } of cursor) {
    const objectId = _oid.toHexString();
    try {
      const packets = await unpackBucket(database, objectId, _id, fence);
      if (packets === null) continue;
      unpacked.buckets++;
      unpacked.packets += packets;
    } catch (error) {
      if (!(error instanceof DamagedBucketError)) throw error;
      onDamaged({ objectId, reason: error.message });
    }
  }
  return unpacked;
}
