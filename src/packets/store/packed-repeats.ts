/** Finds packets in buckets by their names: packets that are sent again after they were packed. */
import type { Document } from 'mongodb';
import { BucketReader, DamagedBucketError, unpack } from '../../packed/unpack.js';
import { rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { toIdFilters } from './bucket-ids.js';
import { BUCKETS, type StoredBucket, toBucket, toBucketFind } from './buckets.js';

/** Buckets in memory at a time: of all but the last, only the columns of names. */
const BATCH_BUCKETS = 16;
/** What tells which packets a bucket has. */
const NAMES = {
  'from.time': 1,
  'to.time': 1,
  n: 1,
  head: 1,
  'columns._id': 1,
  'columns._ts': 1,
  'columns.time': 1,
} as const;
/** The command that reads, of the buckets of a filter, which packets they have. */
export const toNamesFind = (filter: Document): Document => ({
  find: BUCKETS,
  filter,
  projection: NAMES,
  batchSize: BATCH_BUCKETS,
});

/** How often a search begins anew, because a bucket was replaced by another one. */
const ATTEMPTS = 5;

/** Whether there are buckets at all. */
export async function hasBuckets({ db }: Database): Promise<boolean> {
  return (await db.collection(BUCKETS).findOne({}, { projection: { _id: 1 }, hint: { _id: 1 } })) !== null;
}

/**
 * The stored packets of these names, by their own `_id`s. A packet that a damaged bucket may have is not found, so that devices can go
 * on: to store it twice is better than to refuse it for ever.
 */
export async function findPackedPackets(
  database: Database,
  objectId: string,
  packetIds: readonly string[],
): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const missing = packetIds.filter((id) => !found.has(id)).map((id) => Buffer.from(id, 'hex'));
    if (await search(database, objectId, { ids: missing, found })) return found;
  }
  throw new Error('the buckets of an object were replaced all the time');
}

/** Returns false if a bucket was replaced meanwhile. */
async function search(
  database: Database,
  objectId: string,
  { ids, found }: { readonly ids: readonly Buffer[]; readonly found: Map<string, Buffer> },
): Promise<boolean> {
  for (const filter of toIdFilters(objectId, ids)) {
    for await (const { documents } of rawBatches(database, toNamesFind(filter))) {
      for (const bucket of documents.map(toBucket)) {
        const rows = findRows(bucket, ids);
        if (rows.size > 0 && !(await readRows(database, objectId, { bucket, rows, found }))) return false;
      }
    }
  }
  return true;
}

/** The row of each packet that the bucket has. */
function findRows(bucket: StoredBucket, ids: readonly Buffer[]): Map<string, number> {
  const rows = new Map<string, number>();
  orDamaged(() => {
    const reader = new BucketReader(bucket);
    for (const id of ids) {
      const row = reader.findPacket(id);
      if (row !== -1) rows.set(id.toString('hex'), row);
    }
  });
  return rows;
}

async function readRows(
  database: Database,
  objectId: string,
  {
    bucket,
    rows,
    found,
  }: {
    readonly bucket: StoredBucket;
    readonly rows: ReadonlyMap<string, number>;
    readonly found: Map<string, Buffer>;
  },
): Promise<boolean> {
  let isThere = false;
  for await (const { documents } of rawBatches(database, toBucketFind(objectId, [bucket.id]))) {
    for (const document of documents) {
      isThere = true;
      orDamaged(() => {
        const packets = unpack(toBucket(document));
        for (const [id, row] of rows) found.set(id, Buffer.from(packets[row] as Buffer));
      });
    }
  }
  return isThere;
}

function orDamaged(read: () => void): void {
  try {
    read();
  } catch (error) {
    if (!(error instanceof DamagedBucketError)) throw error;
  }
}
