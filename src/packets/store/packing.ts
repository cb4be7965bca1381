/**
 * Packs rows of an object into buckets, and unpacks buckets into rows. In two steps, so that a copy of a packet that is on its way meets
 * its row or its bucket: buckets are stored first and do not count; one transaction removes their rows and makes them count. What
 * happens in between, whatever stops, the packets are in the rows or in the buckets, each exactly once.
 */
import { Binary, BSON, type ClientSession, type Db, type Document, MongoServerError, ObjectId } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import type { PlaceInOrder } from '../../core/packet-order.js';
import { readHead } from '../../packed/head.js';
import { packEvenly } from '../../packed/plan.js';
import { DamagedBucketError, unpack } from '../../packed/unpack.js';
import { cursorIn, readBatch } from '../../platform/mongo/bson/document-batch.js';
import { rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { PACKET_KEY } from '../../platform/mongo/bson/reader.js';
import { COMMITTED_READ, type Database } from '../../platform/mongo/driver/client.js';
import { areDuplicates, isTransientError, mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import { runRawCommand, sequenceOf } from '../../platform/mongo/driver/raw-command.js';
import {
  BUCKETS,
  type KeyedRow,
  type PackingMark,
  type StoredBucket,
  type StoredSpan,
  toBucket,
  toBucketDocument,
  toBucketFind,
  toKeyedRow,
  toSpan,
  toSpanFind,
} from './buckets.js';
import { readReporting } from './damaged-buckets.js';
import { PACKETS } from './query.js';
import { isRemovalWaiting } from './waiting-removals.js';

const { SUBTYPE } = PACKET_KEY;

/** What becomes of rows: all of them are packable, in the order of packets. */
export interface Packing {
  readonly objectId: string;
  readonly rows: readonly KeyedRow[];
  /** A bucket whose packets are packed together with the rows. */
  readonly replaces: Binary | null;
  /** Whether they are packed even if that saves no space. */
  readonly mayGrow?: boolean;
}

/** Within the transaction: throws if others may do the same work. */
export type Fence = (session: ClientSession) => Promise<void>;

/** Buckets that are stored and do not count yet. */
export interface PendingStep {
  readonly objectId: string;
  readonly step: ObjectId;
}

/** Buckets that take more than this share of the rows' bytes save no space: rows are compressed by the block. */
const WORTH_SHARE = 1 / 2;

/**
 * Packs rows at once, where no copy of them can be on its way. Returns whether it did: not where that would save no space, or where a
 * row is not as it was read.
 */
export async function packRows(database: Database, packing: Packing): Promise<boolean> {
  const pending = await storePending(database, packing);
  return pending !== null && (await commitStep(database, pending)) !== null;
}

/** Stores buckets that do not count yet. Null where they would save no space, or where another step has packed the same rows. */
export async function storePending(
  database: Database,
  { objectId, rows, replaces, mayGrow = false }: Packing,
): Promise<PendingStep | null> {
  const old = replaces === null ? [] : (await readBuckets(database, objectId, [replaces])).flatMap(({ rows }) => rows);
  const all = [...old, ...rows].sort(compare);
  const buckets = packEvenly(all.map(({ row }) => row));
  const step = new ObjectId();
  const mark: PackingMark = { step, buckets: buckets.length, replaces };
  let first = 0;
  const documents = buckets.map((bucket) => {
    const begin = first;
    first += readHead(bucket).rows;
    return toBucketDocument(objectId, bucket, all.slice(begin, first), mark);
  });
  if (!mayGrow && sumOf(documents, sizeOf) > WORTH_SHARE * sumOf(all, ({ row }) => row.length)) return null;
  const insert = (): Promise<boolean> =>
    database.db
      .collection(BUCKETS)
      .insertMany(documents)
      .then(
        () => true,
        (error) => {
          if (!areDuplicates(error)) throw error;
          return false;
        },
      );
  if (await mapDriverErrors(insert, LIMITS.databaseOperationMs)) return { objectId, step };
  await dropStep(database, { objectId, step });
  return null;
}

const sizeOf = (document: Document): number => BSON.calculateObjectSize(document);
const sumOf = <T>(all: readonly T[], numberOf: (one: T) => number): number =>
  all.reduce((sum, one) => sum + numberOf(one), 0);

/** The steps that wait for their commit: also those that another instance has begun. */
export async function findPending({ db }: Database): Promise<(PendingStep & { readonly firstMs: number })[]> {
  const pipeline = [
    { $match: { isPending: true, 'mark.step': { $exists: true } } },
    { $group: { _id: '$mark.step', object: { $first: '$_oid' }, firstMs: { $min: '$from.time' } } },
    { $limit: LIMITS.packingStepsPending },
  ];
  const found = await mapDriverErrors(() => db.collection(BUCKETS).aggregate(pipeline).toArray());
  return found.map(({ _id, object, firstMs }) => ({ step: _id, objectId: object.toHexString(), firstMs }));
}

export interface PackedStep {
  readonly packets: number;
  readonly buckets: number;
  /** The sizes of the packets as rows, and of the buckets. */
  readonly rowBytes: number;
  readonly bucketBytes: number;
}

/**
 * Puts the buckets of a step in the place of their rows, once each packet was compared with its row. Otherwise it removes the buckets, and
 * returns null: a row has changed or is gone, or buckets of the step are missing.
 */
export async function commitStep(database: Database, pending: PendingStep, fence?: Fence): Promise<PackedStep | null> {
  try {
    if (await isRemovalWaiting(database, pending.objectId)) throw new StaleStepError('packets are being removed');
    const replacement = await readStep(database, pending);
    await inTransaction(database, async (session) => {
      await fence?.(session);
      await replaceRows(database, session, replacement);
    });
    const { rows, buckets, bucketBytes } = replacement;
    return {
      packets: rows.length,
      buckets: buckets.length,
      rowBytes: sumOf(rows, ({ row }) => row.length),
      bucketBytes,
    };
  } catch (error) {
    const isNoLonger = error instanceof StaleStepError || error instanceof DamagedBucketError;
    // What the database refuses for good does not wait either: its rows are planned again.
    if (isNoLonger || isRefusal(error)) await dropStep(database, pending);
    if (!isNoLonger) throw error;
    return null;
  }
}

const OUT_OF_DISK_SPACE = 14_031;
export const isDiskFull = (error: unknown): boolean =>
  error instanceof MongoServerError && error.code === OUT_OF_DISK_SPACE;

const isRefusal = (error: unknown): boolean =>
  error instanceof MongoServerError && !isTransientError(error) && !isDiskFull(error);

/** Thrown where rows and buckets are no longer as they were when a step was planned. */
class StaleStepError extends Error {}

/** Removes the buckets of a step that do not count. */
export async function dropStep({ db }: Database, { objectId, step }: PendingStep): Promise<void> {
  const these = { _oid: new ObjectId(objectId), isPending: true, 'mark.step': step };
  await mapDriverErrors(() => db.collection(BUCKETS).deleteMany(these), LIMITS.databaseOperationMs);
}

interface Replacement {
  readonly objectId: string;
  readonly step: ObjectId;
  /** The rows to be removed, as the buckets have them. */
  readonly rows: readonly KeyedRow[];
  readonly buckets: readonly Binary[];
  readonly bucketBytes: number;
  readonly replaced: ReadBucket | null;
  /** Of all of their packets. */
  readonly first: PlaceInOrder;
  readonly last: PlaceInOrder;
}

/** Reads what was stored back. */
async function readStep(database: Database, { objectId, step }: PendingStep): Promise<Replacement> {
  const filter = { 'mark.step': step, isPending: true, _oid: new ObjectId(objectId) };
  const documents = await collect(database, { find: BUCKETS, filter, sort: { 'from.time': 1, 'from.stamp': 1 } });
  const mark = documents[0] && (BSON.deserialize(documents[0]).mark as PackingMark);
  if (mark === undefined || documents.length !== mark.buckets) throw new StaleStepError('buckets are missing');
  const all = documents.flatMap((document) => unpackKeyed(toBucket(document)));
  const [replaced = null] = mark.replaces === null ? [] : await readBuckets(database, objectId, [mark.replaces]);
  if (mark.replaces !== null && replaced === null) throw new StaleStepError('the bucket to be replaced is gone');
  const before = byKey(replaced?.rows ?? []);
  const rows: KeyedRow[] = [];
  for (const one of all) {
    const same = before.size === 0 ? undefined : before.get(nameOf(one));
    if (same === undefined) rows.push(one);
    else if (!same.row.equals(one.row)) throw new StaleStepError('a packet is not as it was');
    else before.delete(nameOf(one));
  }
  if (before.size > 0) throw new StaleStepError('packets of the bucket to be replaced are missing');
  const buckets = documents.map((document) => toBucket(document).id);
  const bucketBytes = sumOf(documents, ({ length }) => length);
  const first = all[0] as KeyedRow;
  const last = all.at(-1) as KeyedRow;
  return { objectId, step, rows, buckets, bucketBytes, replaced, first, last };
}

async function replaceRows(
  { db }: Database,
  session: ClientSession,
  { objectId, step, rows, buckets, replaced, first, last }: Replacement,
): Promise<void> {
  const _oid = new ObjectId(objectId);
  const these = { _id: { $in: rows.map(({ key }) => new Binary(key, SUBTYPE)) as unknown as ObjectId[] }, _oid };
  const find = { find: PACKETS, filter: these, hint: { _id: 1 }, batchSize: rows.length + 1 };
  const found = readBatch(cursorIn(await runRawCommand(db, find, session))).documents;
  const stored = new Set(found.map(bytesOf));
  if (!rows.every(({ row }) => stored.has(bytesOf(row)))) throw new StaleStepError('a row has changed');
  // Without a hint, the database may look through all rows of the object.
  const { deletedCount } = await db.collection(PACKETS).deleteMany(these, { session, hint: { _id: 1 } });
  if (deletedCount !== rows.length) throw new StaleStepError('a row is gone');
  // The latest packet stays a row: whoever looks for it reads no buckets.
  const later = { _oid, time: { $gte: last.timeMs } };
  if ((await db.collection(PACKETS).findOne(later, { session, projection: { _id: 1 } })) === null) {
    throw new StaleStepError('a packet has become the latest');
  }
  if (replaced !== null) await removeBucket(db, session, replaced);
  await checkOrder(db, session, { objectId, first, last });
  const ours = { _id: { $in: buckets as unknown as ObjectId[] }, _oid, isPending: true, 'mark.step': step };
  const counted = { $set: { isPending: false }, $unset: { mark: 1 } };
  const { modifiedCount } = await db.collection(BUCKETS).updateMany(ours, counted, { session });
  if (modifiedCount !== buckets.length) throw new StaleStepError('buckets are missing');
}

/** Buckets of an object follow each other, and at most touch. */
async function checkOrder(
  db: Db,
  session: ClientSession,
  { objectId, first, last }: Pick<Replacement, 'objectId' | 'first' | 'last'>,
): Promise<void> {
  const { filter, projection, hint } = toSpanFind({ objectId, time: { from: first.timeMs, to: last.timeMs } });
  const found = await db.collection(BUCKETS).find(filter, { session, projection, hint, raw: true }).toArray();
  const others = (found as unknown as Buffer[]).map(toSpan);
  const isApart = ({ from, to }: StoredSpan): boolean => compare(to, first) <= 0 || compare(last, from) <= 0;
  if (!others.every(isApart)) throw new StaleStepError('another bucket lies between the packets');
}

const compare = (one: PlaceInOrder, other: PlaceInOrder): number =>
  one.timeMs - other.timeMs || one.stampUs - other.stampUs;

/** Only if it is still the one that was read: its head has the checksums of all that is in it. */
async function removeBucket(db: Db, session: ClientSession, { bucket, objectId }: ReadBucket): Promise<void> {
  const same = {
    _id: bucket.id as unknown as ObjectId,
    _oid: new ObjectId(objectId),
    isPending: false,
    head: new Binary(bucket.head),
  };
  const { deletedCount } = await db.collection(BUCKETS).deleteOne(same, { session });
  if (deletedCount !== 1) throw new StaleStepError('the bucket is another one');
}

/** Turns a bucket into rows again, of which none is an event. Returns how many; null where the bucket is gone. Throws a DamagedBucketError. */
export async function unpackBucket(
  database: Database,
  objectId: string,
  id: Binary,
  fence?: Fence,
): Promise<number | null> {
  const [found] = await readBuckets(database, objectId, [id]);
  if (found === undefined) return null;
  try {
    await inTransaction(database, async (session) => {
      await fence?.(session);
      await removeBucket(database.db, session, found);
      await insertRows(database, session, found.rows);
    });
    return found.rows.length;
  } catch (error) {
    if (error instanceof StaleStepError) return null;
    throw error;
  }
}

/** As bytes: rows become exactly what they were. */
async function insertRows({ db }: Database, session: ClientSession, rows: readonly KeyedRow[]): Promise<void> {
  const documents = sequenceOf(
    'documents',
    rows.map(({ row }) => row),
  );
  const reply = BSON.deserialize(await runRawCommand(db, { insert: PACKETS, documents, ordered: true }, session));
  const [failed] = reply.writeErrors ?? [];
  if (failed !== undefined) throw new MongoServerError({ message: failed.errmsg, code: failed.code });
}

async function inTransaction(database: Database, work: (session: ClientSession) => Promise<void>): Promise<void> {
  const run = () =>
    database.client.withSession((session) =>
      session.withTransaction(() => work(session), { readConcern: { level: 'snapshot' } }),
    );
  await mapDriverErrors(run, LIMITS.databaseOperationMs);
}

interface ReadBucket {
  readonly objectId: string;
  readonly bucket: StoredBucket;
  readonly rows: readonly KeyedRow[];
}

/** Those of these buckets that are there and count. Throws a DamagedBucketError. */
async function readBuckets(database: Database, objectId: string, ids: readonly Binary[]): Promise<ReadBucket[]> {
  const documents = await collect(database, toBucketFind(objectId, ids));
  return documents.map((document) => {
    const bucket = toBucket(document);
    return { objectId, bucket, rows: readReporting(database, bucket.id, () => unpackKeyed(bucket)) };
  });
}

async function collect(database: Database, command: Document): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const { documents } of rawBatches(database, { ...command, ...COMMITTED_READ })) found.push(...documents);
  return found;
}

const unpackKeyed = (bucket: StoredBucket): KeyedRow[] => unpack(bucket).flatMap((row) => toKeyedRow(row) ?? []);
const nameOf = ({ key }: KeyedRow): string => key.toString('latin1');
const bytesOf = (row: Buffer): string => row.toString('latin1');
const byKey = (rows: readonly KeyedRow[]): Map<string, KeyedRow> => new Map(rows.map((row) => [nameOf(row), row]));
