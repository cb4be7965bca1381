/**
 * Removes packed packets: buckets as wholes where all of their packets go. Buckets of which some packets stay become rows first, and so
 * does the last bucket before the latest packets, which are always rows.
 */
import type { Binary } from 'mongodb';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import { PRESENCE_FIELDS } from '../../core/packet-fields.js';
import { BucketReader, DamagedBucketError, unpack } from '../../packed/unpack.js';
import { clock } from '../../platform/clock.js';
import { rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { hasOthers, PACKET_KEY } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import { markRemoval } from '../removal-marks.js';
import { toIdFilters } from './bucket-ids.js';
import {
  BUCKETS,
  type Extent,
  type StoredSpan,
  toBucket,
  toBucketFind,
  toKeyedRow,
  toSpan,
  toSpanFind,
} from './buckets.js';
import { readReporting } from './damaged-buckets.js';
import { toNamesFind } from './packed-repeats.js';
import { unpackBucket } from './packing.js';
import { PACKETS, type PacketQuery, type Range, toFilter } from './query.js';
import { keepPlacesOf } from './removed-places.js';

export interface BucketRemoval {
  readonly objectId: string;
  /** Which of its packets. */
  readonly which: Pick<PacketQuery, 'time' | 'stamps' | 'exceptKeys'>;
  readonly signal?: AbortSignal;
  /** Whether clients can still continue after the removed packets. */
  readonly keepsPlaces: boolean;
  /** Buckets of which some packets stay wait, unless they begin before this time. */
  readonly cutsBeforeMs?: number;
}

export interface BucketsRemoved {
  /** Packets of buckets that were removed as wholes. */
  readonly removed: number;
  /** Buckets that became rows. */
  readonly unpacked: number;
}

const NOTHING = { removed: 0, unpacked: 0 } as const;

/** Removes buckets as wholes, or turns them into rows, with pauses as long as the steps. What is left to be removed is in rows then. */
export async function removeBucketsOf(database: Database, removal: BucketRemoval): Promise<BucketsRemoved> {
  const { objectId, which, signal } = removal;
  await dropPending(database, removal);
  const keys = await findPackedKeys(database, objectId, which.exceptKeys ?? []);
  const total = { removed: 0, unpacked: 0 };
  for await (const { documents } of rawBatches(database, {
    ...toSpanFind({ objectId, time: which.time ?? {} }),
    batchSize: BATCH_SPANS,
  })) {
    for (const span of documents.map(toSpan)) {
      if (signal?.aborted) return total;
      const startMs = clock.steadyMs();
      const { removed, unpacked } = await removeFrom(database, removal, { span, keys });
      total.removed += removed;
      total.unpacked += unpacked;
      if (removed + unpacked > 0) await clock.wait(clock.steadyMs() - startMs, { signal }).catch(() => undefined);
    }
  }
  return total;
}

const BATCH_SPANS = 100;

/**
 * Turns the last buckets into rows, until the latest packet that stays, and the last one with data among the latest ones, are rows behind
 * them. Returns how many buckets it was.
 */
export async function keepLatestInRows(
  database: Database,
  { objectId, which, signal }: Pick<BucketRemoval, 'objectId' | 'which' | 'signal'>,
): Promise<number> {
  for (let unpacked = 0; ; unpacked++) {
    const last = await findLastSpan(database, objectId);
    if (last === null || signal?.aborted) return unpacked;
    if (await areLatestBehind(database, objectId, { last, which })) return unpacked;
    await orDamaged(() => unpackBucket(database, objectId, last.id));
    if ((await findLastSpan(database, objectId))?.id.toString('hex') === last.id.toString('hex')) return unpacked;
  }
}

async function findLastSpan(database: Database, objectId: string): Promise<StoredSpan | null> {
  for await (const { documents } of rawBatches(database, toSpanFind({ objectId, isDescending: true, limit: 1 }))) {
    for (const document of documents) return toSpan(document);
  }
  return null;
}

/** Whether enough rows behind the last bucket stay. */
async function areLatestBehind(
  database: Database,
  objectId: string,
  { last, which }: { readonly last: StoredSpan; readonly which: BucketRemoval['which'] },
): Promise<boolean> {
  const _oid = new ObjectId(objectId);
  const { $and: [, ...removed] = [] } = toFilter({ objectIds: [objectId], ...which });
  const { timeMs, stampUs } = last.to;
  const behind = { time: { $gte: timeMs }, $or: [{ time: { $gt: timeMs } }, { _ts: { $gt: stampUs } }] };
  const filter = { $and: [{ _oid }, behind, { $nor: [{ $and: removed }] }] };
  const find = {
    find: PACKETS,
    filter,
    sort: { time: -1, _ts: -1 },
    limit: LIMITS.statePackets,
    batchSize: BATCH_SPANS,
  };
  let rows = 0;
  for await (const { documents } of rawBatches(database, find)) {
    for (const row of documents) {
      if (hasOthers(row, PRESENCE_FIELDS)) return true;
      rows++;
    }
  }
  return rows >= LIMITS.statePackets;
}

/** A step of packing that is stored and does not count would outlast its rows, and tell that they are still there. */
async function dropPending({ db }: Database, { objectId, which: { time = {} } }: BucketRemoval): Promise<void> {
  const { from, above, to, below } = time;
  const begin = from ?? above ?? Number.NEGATIVE_INFINITY;
  const end = to ?? below ?? Number.POSITIVE_INFINITY;
  const within = { 'to.time': { $gte: begin }, 'from.time': { $lte: end } };
  const these = { _oid: new ObjectId(objectId), isPending: true, ...within };
  const buckets = db.collection(BUCKETS);
  // Mostly there are none, and a removal would wait for a majority all the same.
  const one = await mapDriverErrors(() => buckets.findOne(these, { projection: { _id: 1 } }));
  if (one !== null) await mapDriverErrors(() => buckets.deleteMany(these));
}

/** Those of these keys that are not rows. */
async function findPackedKeys({ db }: Database, objectId: string, keys: readonly Binary[]): Promise<readonly Binary[]> {
  if (keys.length === 0) return keys;
  const these = { _id: { $in: keys as unknown[] as ObjectId[] }, _oid: new ObjectId(objectId) };
  const rows = await mapDriverErrors(() =>
    db
      .collection(PACKETS)
      .find(these, { projection: { _id: 1 } })
      .toArray(),
  );
  const found = new Set(rows.map(({ _id }) => (_id as unknown as Binary).toString('hex')));
  return keys.filter((key) => !found.has(key.toString('hex')));
}

async function removeFrom(
  database: Database,
  removal: BucketRemoval,
  { span, keys }: { readonly span: StoredSpan; readonly keys: readonly Binary[] },
): Promise<BucketsRemoved> {
  const { objectId, which, cutsBeforeMs = Number.POSITIVE_INFINITY } = removal;
  const { time = {}, stamps } = which;
  const isApart = stamps !== undefined && !stamps.some((range) => overlaps(span.stamps, range));
  if (isApart) return NOTHING;
  const areTimesIn = isWithin({ from: span.from.timeMs, to: span.to.timeMs }, time);
  const areStampsIn = stamps === undefined || stamps.some((range) => isWithin(span.stamps, range));
  const isWhole = areTimesIn && areStampsIn && !(await hasAny(database, span, keys));
  if (isWhole) return removeWhole(database, removal, span);
  if (span.from.timeMs >= cutsBeforeMs) return NOTHING;
  const unpacked = await orDamaged(() => unpackBucket(database, objectId, span.id));
  return unpacked === null ? NOTHING : { removed: 0, unpacked: 1 };
}

/** Whether the bucket has any of these packets, or is damaged, so that it cannot be told. */
async function hasAny(database: Database, span: StoredSpan, keys: readonly Binary[]): Promise<boolean> {
  const ids = keys.map((key) => Buffer.from(key.value()).subarray(0, PACKET_KEY.OWN_BYTES));
  for (const filter of toIdFilters(span.objectId, ids)) {
    const find = { ...toNamesFind({ $and: [{ _id: span.id }, filter] }), hint: { _id: 1 } };
    for await (const { documents } of rawBatches(database, find)) {
      for (const document of documents) if (hasPacket(database, document, ids)) return true;
    }
  }
  return false;
}

function hasPacket(database: Database, document: Buffer, ids: readonly Buffer[]): boolean {
  const bucket = toBucket(document);
  try {
    return readReporting(database, bucket.id, () => {
      const reader = new BucketReader(bucket);
      return ids.some((id) => reader.findPacket(id) !== -1);
    });
  } catch (error) {
    if (error instanceof DamagedBucketError) return true;
    throw error;
  }
}

const isWithin = (extent: Extent, { from, above, to, below }: Range): boolean =>
  (from == null || extent.from >= from) &&
  (above == null || extent.from > above) &&
  (to == null || extent.to <= to) &&
  (below == null || extent.to < below);

const overlaps = (extent: Extent, { from, above, to, below }: Range): boolean =>
  (from == null || extent.to >= from) &&
  (above == null || extent.to > above) &&
  (to == null || extent.from <= to) &&
  (below == null || extent.from < below);

async function removeWhole(
  database: Database,
  { objectId, keepsPlaces }: BucketRemoval,
  { id, from, to, packets }: StoredSpan,
): Promise<BucketsRemoved> {
  await markRemoval(database, objectId, [from.timeMs, to.timeMs]);
  if (keepsPlaces) await orDamaged(() => keepBucketPlaces(database, objectId, id));
  const these = { _id: id as unknown as ObjectId, _oid: new ObjectId(objectId), isPending: false };
  const { deletedCount } = await mapDriverErrors(() => database.db.collection(BUCKETS).deleteOne(these));
  return { removed: deletedCount * packets, unpacked: 0 };
}

async function keepBucketPlaces(database: Database, objectId: string, id: Binary): Promise<void> {
  for await (const { documents } of rawBatches(database, toBucketFind(objectId, [id]))) {
    const rows = documents.map(toBucket).flatMap((bucket) => readReporting(database, bucket.id, () => unpack(bucket)));
    await keepPlacesOf(
      database,
      rows.flatMap((row) => toKeyedRow(row) ?? []),
    );
  }
}

/** Nobody can read a damaged bucket: what goes as a whole goes, and what would be unpacked stays. */
async function orDamaged<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DamagedBucketError) return null;
    throw error;
  }
}
