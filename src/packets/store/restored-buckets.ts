/**
 * Settles what a backup has that was read over some time, while rows were packed: a packet may be in a row and in a bucket, or in two
 * buckets. Nobody else uses the database meanwhile.
 */
import { Binary, BSON, type ObjectId } from 'mongodb';
import { DamagedBucketError, unpack } from '../../packed/unpack.js';
import { rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { PACKET_KEY } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { areDuplicates, mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import { BUCKETS, type KeyedRow, type StoredSpan, toBucket, toBucketFind, toKeyedRow, toSpan } from './buckets.js';
import { PACKETS } from './query.js';

const ALL_SPANS = { _oid: 1, to: 1, from: 1, stamps: 1, n: 1, bytes: 1 } as const;
/** Keeps the exact BSON types of all values. */
const AS_STORED = { promoteValues: false, promoteBuffers: false, bsonRegExp: true } as const;
const BATCH_SPANS = 1_000;

/** Leaves each packet in one place. */
export async function settleBuckets(database: Database): Promise<void> {
  while (await separate(database));
  for await (const span of spansOf(database)) {
    const rows = await readRows(database, span);
    const these = { _id: { $in: rows.map(({ key }) => new Binary(key, PACKET_KEY.SUBTYPE)) as unknown as ObjectId[] } };
    if (rows.length > 0) await mapDriverErrors(() => database.db.collection(PACKETS).deleteMany(these));
  }
}

/** Of buckets that overlap, the smaller ones become rows. Returns whether there were any. */
async function separate(database: Database): Promise<boolean> {
  let before: StoredSpan | null = null;
  let isFound = false;
  for await (const span of spansOf(database)) {
    if (before !== null && before.objectId === span.objectId && !isBefore(before, span)) {
      const smaller: StoredSpan = before.packets < span.packets ? before : span;
      isFound = (await toRows(database, smaller)) || isFound;
      if (smaller === span) continue;
    }
    before = span;
  }
  return isFound;
}

const isBefore = ({ to }: StoredSpan, { from }: StoredSpan): boolean =>
  to.timeMs < from.timeMs || (to.timeMs === from.timeMs && to.stampUs < from.stampUs);

async function* spansOf(database: Database): AsyncGenerator<StoredSpan> {
  const sort = { _oid: 1, isPending: 1, 'to.time': 1, 'to.stamp': 1 };
  const find = { find: BUCKETS, filter: {}, projection: ALL_SPANS, sort, batchSize: BATCH_SPANS };
  for await (const { documents } of rawBatches(database, find, { withinMs: null })) yield* documents.map(toSpan);
}

/** A damaged bucket has no packets that could be read. */
async function readRows(database: Database, { objectId, id }: StoredSpan): Promise<KeyedRow[]> {
  const rows: KeyedRow[] = [];
  try {
    for await (const { documents } of rawBatches(database, toBucketFind(objectId, [id]))) {
      for (const document of documents)
        rows.push(...unpack(toBucket(document)).flatMap((row) => toKeyedRow(row) ?? []));
    }
    return rows;
  } catch (error) {
    if (error instanceof DamagedBucketError) return [];
    throw error;
  }
}

/** Returns false for a damaged bucket. */
async function toRows(database: Database, span: StoredSpan): Promise<boolean> {
  const rows = await readRows(database, span);
  if (rows.length === 0) return false;
  const documents = rows.map(({ row }) => BSON.deserialize(row, AS_STORED));
  const insert = () => database.db.collection(PACKETS).insertMany(documents, { ordered: false });
  await mapDriverErrors(() =>
    insert().catch((error) => {
      if (!areDuplicates(error)) throw error;
    }),
  );
  const one = { _id: span.id as unknown as ObjectId };
  await mapDriverErrors(() => database.db.collection(BUCKETS).deleteOne(one));
  return true;
}
