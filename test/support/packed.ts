/** Packs the history of an object as the job does, at once: for tests of what reads, repeats or removes it. */
import { BSON, type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { unpack } from '../../src/packed/unpack.js';
import { type KeyedRow, toBucket, toKeyedRow } from '../../src/packets/store/buckets.js';
import { packRows } from '../../src/packets/store/packing.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import type { Database } from '../../src/platform/mongo/driver/client.js';

// The job waits until every reader knows that there are buckets; these functions do not.
Object.assign(LIMITS, { bucketsKnownMs: 0 });

export const HISTORY_START_MS = Date.UTC(2026, 0, 1);

/** Stores an object's packets, one each second, with these fields; returns its `_id`. */
export async function storeHistory(
  { db }: Database,
  count: number,
  fieldsOf: (nth: number) => Document,
): Promise<string> {
  const object = new ObjectId();
  const documents = Array.from({ length: count }, (_, nth) => ({
    _id: toPacketKey(new ObjectId().toHexString(), object) as unknown as ObjectId,
    _ts: (HISTORY_START_MS + nth * 1_000) * 1_000 + 40,
    time: HISTORY_START_MS + nth * 1_000,
    _oid: object,
    ...fieldsOf(nth),
  }));
  await db.collection('packets').insertMany(documents);
  return object.toHexString();
}

export interface PackedPart {
  /** Up to this time; without it, all but the latest packet. */
  readonly toMs?: number;
  readonly bucketPackets?: number;
}

/** Packs the oldest rows of an object. Returns the number of buckets. */
export async function packHistory(
  database: Database,
  objectId: string,
  { toMs, bucketPackets = 1_000 }: PackedPart = {},
): Promise<number> {
  const all = await readStoredRows(database, objectId);
  const old = toMs === undefined ? all.slice(0, -1) : all.filter(({ timeMs }) => timeMs <= toMs);
  let buckets = 0;
  for (let first = 0; first < old.length; first += bucketPackets) {
    const rows = old.slice(first, first + bucketPackets);
    if (!(await packRows(database, { objectId, rows, replaces: null, mayGrow: true })))
      throw new Error('rows were not packed');
    buckets++;
  }
  return buckets;
}

/** The rows of an object as they are stored, in the order of packets. */
export async function readStoredRows(database: Database, objectId: string): Promise<KeyedRow[]> {
  const found = await database.db
    .collection('packets')
    .find({ _oid: new ObjectId(objectId) }, { raw: true, sort: { time: 1, _ts: 1 } })
    .toArray();
  return (found as unknown as Buffer[]).map((row) => toKeyedRow(row) as KeyedRow);
}

/** All packets of an object, out of rows and buckets, in their order. */
export async function readHistory(database: Database, objectId: string): Promise<Document[]> {
  const buckets = await database.db
    .collection('packedPackets')
    .find({ _oid: new ObjectId(objectId), isPending: false }, { raw: true })
    .toArray();
  const packed = (buckets as unknown as Buffer[]).flatMap((bucket) => unpack(toBucket(bucket)));
  const rows = (await readStoredRows(database, objectId)).map(({ row }) => row);
  return [...packed, ...rows]
    .map((row) => BSON.deserialize(row))
    .sort((one, other) => one.time - other.time || one._ts - other._ts);
}
