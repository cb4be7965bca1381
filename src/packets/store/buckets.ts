/**
 * Packed history as it is stored: a document for each bucket, in a collection of its own, and one index that tells where the buckets
 * of an object lie. docs/adr/0010-packed-history.md describes both.
 */
import { Binary, BSON, type Document, ObjectId } from 'mongodb';
import type { PlaceInOrder } from '../../core/packet-order.js';
import type { Bucket } from '../../packed/head.js';
import type { BucketSpan } from '../../packed/plan.js';
import { readNumber } from '../../platform/mongo/bson/numbers.js';
import { BSON_TYPES, findField, int32, PACKET_KEY } from '../../platform/mongo/bson/reader.js';
import { toIdFields } from './bucket-ids.js';
import type { Range } from './query.js';

export const BUCKETS = 'packedPackets';
const ID_SUBTYPE = 0x80;
const COUNT_BYTES = 4;

/** Least and greatest, both included. */
export interface Extent {
  readonly from: number;
  readonly to: number;
}

/** What the index tells of a bucket. */
export interface StoredSpan extends BucketSpan {
  readonly id: Binary;
  readonly objectId: string;
  /** In microseconds. */
  readonly stamps: Extent;
}

/** Buckets that together replace rows: they are stored first, and count from the moment at which the rows are removed. */
export interface PackingMark {
  readonly step: ObjectId;
  /** How many buckets it has. */
  readonly buckets: number;
  /** A bucket whose packets are in these, too. */
  readonly replaces: Binary | null;
}

/** A row whose place in the order of packets and whose key are known. */
export interface KeyedRow extends PlaceInOrder {
  readonly row: Buffer;
  readonly key: Buffer;
}

/** Null for a document that can never be packed, whatever its other fields are: no packet that this service has stored is one. */
export function toKeyedRow(row: Buffer): KeyedRow | null {
  const value = findField(row, '_id', BSON_TYPES.BINARY);
  if (value === null || int32(value, 0) !== PACKET_KEY.BYTES || value[COUNT_BYTES] !== PACKET_KEY.SUBTYPE) return null;
  const timeMs = readNumber(row, 0, 'time');
  const stampUs = readNumber(row, 0, '_ts');
  if (!Number.isFinite(timeMs) || !Number.isFinite(stampUs)) return null;
  return { row, key: value.subarray(COUNT_BYTES + 1), timeMs, stampUs };
}

/** The document of a bucket; `mark` until it takes the place of its rows. */
export function toBucketDocument(
  objectId: string,
  bucket: Bucket,
  rows: readonly KeyedRow[],
  mark: PackingMark | null,
): Document {
  const first = rows[0] as KeyedRow;
  const last = rows.at(-1) as KeyedRow;
  return {
    _id: bucketIdOf(first.key, rows.length, mark?.replaces ?? null),
    _oid: new ObjectId(objectId),
    isPending: mark !== null,
    from: toStoredPlace(first),
    to: toStoredPlace(last),
    stamps: extentOf(rows.map(({ stampUs }) => stampUs)),
    ...toIdFields(rows),
    n: rows.length,
    bytes: rows.reduce((sum, { row }) => sum + row.length, 0),
    ...(mark !== null && { mark }),
    head: new Binary(bucket.head),
    columns: Object.fromEntries(
      Array.from(bucket.columns, ([name, bytes]) => [toColumnName(name), new Binary(bytes)] as const),
    ),
  };
}

/**
 * The key of its first packet, and the number of its packets: a bucket can stand beside the one that it replaces. If that one has as many,
 * because its packets and the late ones were divided, the highest bit differs.
 */
function bucketIdOf(key: Buffer, packets: number, replaces: Binary | null): Binary {
  const bytes = Buffer.alloc(PACKET_KEY.BYTES + COUNT_BYTES);
  key.copy(bytes);
  bytes.writeUInt32BE(packets, PACKET_KEY.BYTES);
  if (replaces !== null && bytes.equals(replaces.value())) bytes.writeUInt32BE(HIGHEST_BIT + packets, PACKET_KEY.BYTES);
  return new Binary(bytes, ID_SUBTYPE);
}

const HIGHEST_BIT = 2 ** 31;

const toStoredPlace = ({ timeMs, stampUs }: PlaceInOrder): Document => ({ time: timeMs, stamp: stampUs });

function extentOf(numbers: readonly number[]): Extent {
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (const number of numbers) {
    if (number < from) from = number;
    if (number > to) to = number;
  }
  return { from, to };
}

/** Names of fields may contain what the database reads as a path. */
export const toColumnName = (field: string): string =>
  field === '' ? '%' : field.replaceAll('%', '%25').replaceAll('.', '%2E').replaceAll('$', '%24');

export const toFieldName = (column: string): string =>
  column === '%' ? '' : column.replaceAll('%24', '$').replaceAll('%2E', '.').replaceAll('%25', '%');

/** By the keys of this index alone (collections.ts), the buckets of an object are found in their order. */
export const SPAN_INDEX = 'places';
const SPAN_FIELDS = {
  _oid: 1,
  'to.time': 1,
  'to.stamp': 1,
  'from.time': 1,
  'from.stamp': 1,
  'stamps.from': 1,
  'stamps.to': 1,
  n: 1,
  bytes: 1,
} as const;

export interface SpanQuery {
  readonly objectId: string;
  /** Buckets that have or may have packets of these times. */
  readonly time?: Range;
  readonly isDescending?: boolean;
  readonly limit?: number;
}

/** The command that finds where buckets lie, in their order. */
export function toSpanFind({ objectId, time = {}, isDescending = false, limit }: SpanQuery): Document {
  const filter: Document = { _oid: new ObjectId(objectId), isPending: false };
  const { from, above, to, below } = time;
  if (from != null || above != null)
    filter['to.time'] = { ...(from != null && { $gte: from }), ...(above != null && { $gt: above }) };
  if (to != null || below != null)
    filter['from.time'] = { ...(to != null && { $lte: to }), ...(below != null && { $lt: below }) };
  const direction = isDescending ? -1 : 1;
  return {
    find: BUCKETS,
    filter,
    projection: SPAN_FIELDS,
    sort: { 'to.time': direction, 'to.stamp': direction },
    hint: SPAN_INDEX,
    ...(limit !== undefined && { limit }),
  };
}

/** What `toSpanFind` has found. */
export function toSpan(document: Buffer): StoredSpan {
  const { _id, _oid, from, to, stamps, n, bytes } = BSON.deserialize(document);
  return {
    id: _id,
    objectId: _oid.toHexString(),
    from: toPlace(from),
    to: toPlace(to),
    stamps,
    packets: n,
    bytes,
  };
}

const toPlace = ({ time, stamp }: Document): PlaceInOrder => ({ timeMs: time, stampUs: stamp });

/** The command that reads buckets; with `fields`, only these columns. They come in any order. */
export function toBucketFind(
  objectId: string,
  ids: readonly Binary[],
  fields: readonly string[] | null = null,
): Document {
  const columns = fields?.map((field) => [`columns.${toColumnName(field)}`, 1] as const);
  return {
    find: BUCKETS,
    // The object tells the shard.
    filter: { _id: { $in: ids }, _oid: new ObjectId(objectId) },
    hint: { _id: 1 },
    batchSize: ids.length + 1,
    ...(columns !== undefined && {
      projection: { 'from.time': 1, 'to.time': 1, n: 1, head: 1, ...Object.fromEntries(columns) },
    }),
  };
}

/** A bucket as `toBucketFind` finds it, to be read by `packed/unpack.ts`. */
export interface StoredBucket extends Bucket {
  readonly id: Binary;
  readonly packets: number;
}

/** Never throws for one that is damaged: reading it does. */
export function toBucket(document: Buffer): StoredBucket {
  const { _id, from, to, n, head, columns } = BSON.deserialize(document, { promoteBuffers: false });
  const named = Object.entries((columns ?? {}) as Record<string, Binary>);
  return {
    id: _id,
    packets: n,
    // The interval of times: the last packet may have arrived before the first one, but it is not older.
    fromMs: from.time,
    toMs: to.time,
    head: bytesOf(head),
    columns: new Map(named.map(([name, bytes]) => [toFieldName(name), bytesOf(bytes)])),
  };
}

const bytesOf = (binary: unknown): Buffer => (binary instanceof Binary ? Buffer.from(binary.value()) : Buffer.alloc(0));
