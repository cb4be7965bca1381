/** The job of packing, on a history in the database: what it packs, what it leaves, and what follows when it is interrupted. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../../src/core/limits.js';
import { unpack } from '../../../src/packed/unpack.js';
import { createPass, PACKING_LEASE, type PackingOptions, startPacking } from '../../../src/packets/packing.js';
import { toBucket } from '../../../src/packets/store/buckets.js';
import { findSpans } from '../../../src/packets/store/old-rows.js';
import { findPending, storePending } from '../../../src/packets/store/packing.js';
import { toPacketKey } from '../../../src/platform/mongo/bson/packet-key.js';
import { createClient, type Database, databaseOf } from '../../../src/platform/mongo/driver/client.js';
import { acquireLease } from '../../../src/platform/mongo/driver/lease.js';
import { prepareCollections } from '../../../src/platform/mongo/schema/collections.js';
import { NO_PACKING_METRICS } from '../../../src/platform/ops/packing-metrics.js';
import { testUri } from '../../support/fixture.js';
import { readStoredRows } from '../../support/packed.js';
import { until } from '../../support/until.js';

Object.assign(LIMITS, { packingSettleMs: 0, packingPacketsPerSecond: 1e9, packingPauseMs: 10 });
const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 0, 10);
const never = new AbortController().signal;
let database: Database;

beforeAll(async () => {
  database = databaseOf(await createClient(testUri()).connect());
  await prepareCollections(database.db);
});
beforeEach(async () => {
  await Promise.all(['packets', 'packedPackets'].map((name) => database.db.collection(name).deleteMany({})));
});
afterAll(async () => {
  await database.db.dropDatabase();
  await database.client.close();
});

const lines: string[] = [];
const log = {
  info: () => undefined,
  warn: (_details: object, message: string) => void lines.push(message),
  error: (_details: object, message: string) => void lines.push(message),
};

function optionsAt(nowMs: number): PackingOptions & { packAfterMs: number } {
  return { database, packAfterMs: DAY_MS, log, metrics: NO_PACKING_METRICS, now: () => nowMs };
}

const noFence = async (): Promise<void> => undefined;
const pack = (nowMs = NOW_MS): Promise<void> => createPass(optionsAt(nowMs), noFence, never).run();

/** Stores packets of an object, one every so many ms from a time on; its `_id`. */
async function addPackets(count: number, fromMs: number, stepMs: number, object = new ObjectId()): Promise<string> {
  const documents = Array.from({ length: count }, (_, nth) => ({
    _id: toPacketKey(new ObjectId().toHexString(), object) as unknown as ObjectId,
    _ts: (fromMs + nth * stepMs) * 1_000 + 40,
    time: fromMs + nth * stepMs,
    online: true,
    _oid: object,
    id: 'press-7',
    speed: nth,
  }));
  await database.db.collection('packets').insertMany(documents);
  await database.db
    .collection('objects')
    .updateOne({ _id: object }, { $set: { id: object.toHexString() } }, { upsert: true });
  return object.toHexString();
}

const bucketsOf = async (objectId: string): Promise<number[]> =>
  (await findSpans(database, { objectId })).map(({ packets }) => packets);

/** All packets, in rows and in buckets that count. */
async function readAll(objectId: string): Promise<string[]> {
  const _oid = new ObjectId(objectId);
  const documents = await database.db
    .collection('packedPackets')
    .find({ _oid, isPending: false }, { raw: true })
    .toArray();
  const packed = (documents as unknown as Buffer[]).flatMap((document) => unpack(toBucket(document)));
  const rows = (await readStoredRows(database, objectId)).map(({ row }) => row);
  return [...packed, ...rows].map((row) => row.toString('hex')).sort();
}

test('packs old packets, and leaves those that are younger or too few', async () => {
  // Those of the first eight days: the next one arrived 40 µs too late.
  const long = await addPackets(2_600, NOW_MS - 9 * DAY_MS, 300_000);
  const few = await addPackets(60, NOW_MS - 9 * DAY_MS, 1_000);
  const young = await addPackets(2_000, NOW_MS - DAY_MS + 1, 1_000);
  const before = await Promise.all([long, few, young].map(readAll));
  await pack();
  expect(await bucketsOf(long)).toEqual([1_000, 1_000, 304]);
  expect(await bucketsOf(few)).toEqual([]);
  expect(await bucketsOf(young)).toEqual([]);
  expect(await Promise.all([long, few, young].map(readAll))).toEqual(before);
  await pack();
  expect(await bucketsOf(long)).toEqual([1_000, 1_000, 304]);
});

test('leaves the latest packet, however old', async () => {
  const objectId = await addPackets(300, NOW_MS - 9 * DAY_MS, 1_000);
  await pack();
  expect(await bucketsOf(objectId)).toEqual([299]);
  expect((await readStoredRows(database, objectId)).map(({ timeMs }) => timeMs)).toEqual([
    NOW_MS - 9 * DAY_MS + 299_000,
  ]);
});

test('goes on with an object that has more rows than are planned together', async () => {
  const most = LIMITS.packingRows;
  Object.assign(LIMITS, { packingRows: 1_500 });
  try {
    const objectId = await addPackets(4_001, NOW_MS - 9 * DAY_MS, 1_000);
    const before = await readAll(objectId);
    await pack();
    expect(await bucketsOf(objectId)).toEqual([1_000, 1_000, 1_000, 1_000]);
    expect(await readAll(objectId)).toEqual(before);
  } finally {
    Object.assign(LIMITS, { packingRows: most });
  }
});

test('stores all buckets of a long history before the first ones have settled', async () => {
  const { packingRows, packingSettleMs } = LIMITS;
  // They never settle.
  Object.assign(LIMITS, { packingRows: 1_500, packingSettleMs: 600_000 });
  const stop = new AbortController();
  const objectId = await addPackets(6_001, NOW_MS - 9 * DAY_MS, 1_000);
  const other = await addPackets(1_001, NOW_MS - 9 * DAY_MS, 1_000);
  const before = await readAll(objectId);
  const passing = createPass(optionsAt(NOW_MS), noFence, stop.signal).run();
  const countPending = (): Promise<number> => database.db.collection('packedPackets').countDocuments();
  try {
    await until(async () => (await countPending()) === 7, 'the buckets of both histories');
  } finally {
    Object.assign(LIMITS, { packingRows, packingSettleMs });
    stop.abort();
    await passing;
  }
  await pack();
  expect(await bucketsOf(objectId)).toEqual(Array(6).fill(1_000));
  expect(await bucketsOf(other)).toEqual([1_000]);
  expect(await readAll(objectId)).toEqual(before);
});

test('replaces the rows of all objects in the order of time, which they lie in together', async () => {
  const { packingSettleMs } = LIMITS;
  // Nothing settles before the buckets of both objects are stored.
  Object.assign(LIMITS, { packingSettleMs: 600_000 });
  const stop = new AbortController();
  const objectIds: string[] = [];
  for (let nth = 0; nth < 2; nth++) objectIds.push(await addPackets(2_001, NOW_MS - 9 * DAY_MS + nth * 10, 1_000));
  const passing = createPass(optionsAt(NOW_MS), noFence, stop.signal).run();
  const buckets = database.db.collection('packedPackets');
  const ours = { _oid: { $in: objectIds.map((id) => new ObjectId(id)) } };
  await until(async () => (await buckets.countDocuments(ours)) === 4, 'the buckets of both objects');
  stop.abort();
  await passing;
  Object.assign(LIMITS, { packingSettleMs });
  type Bucket = { readonly fullDocument: { readonly from: { readonly time: number } } };
  const changes = buckets.watch([{ $match: { operationType: 'update' } }], { fullDocument: 'updateLookup' });
  try {
    // The stream begins.
    await changes.tryNext();
    await pack();
    const firstMs: number[] = [];
    while (firstMs.length < 4) firstMs.push(((await changes.next()) as unknown as Bucket).fullDocument.from.time);
    expect(firstMs).toEqual([0, 10, 1_000_000, 1_000_010].map((ms) => NOW_MS - 9 * DAY_MS + ms));
  } finally {
    await changes.close();
  }
});

test('fills the last bucket, and packs late packets, of a history that is longer than is planned together', async () => {
  const { packingRows } = LIMITS;
  const object = new ObjectId();
  const objectId = await addPackets(401, NOW_MS - 20 * DAY_MS, 1_000, object);
  await pack();
  expect(await bucketsOf(objectId)).toEqual([400]);
  await addPackets(150, NOW_MS - 20 * DAY_MS + 500, 2_000, object);
  await addPackets(3_000, NOW_MS - 19 * DAY_MS, 1_000, object);
  const before = await readAll(objectId);
  Object.assign(LIMITS, { packingRows: 1_100 });
  try {
    await pack();
    await pack();
  } finally {
    Object.assign(LIMITS, { packingRows });
  }
  expect(await readAll(objectId)).toEqual(before);
  expect((await bucketsOf(objectId)).reduce((sum, packets) => sum + packets, 0)).toBeGreaterThan(3_400);
  expect(await findPending(database)).toEqual([]);
});

test('adds packets that came late to their bucket', async () => {
  const object = new ObjectId();
  const objectId = await addPackets(1_001, NOW_MS - 9 * DAY_MS, 1_000, object);
  await pack();
  await addPackets(150, NOW_MS - 9 * DAY_MS + 500, 2_000, object);
  const before = await readAll(objectId);
  await pack();
  expect((await bucketsOf(objectId)).reduce((sum, packets) => sum + packets, 0)).toBe(1_150);
  expect(await readStoredRows(database, objectId)).toHaveLength(1);
  expect(await readAll(objectId)).toEqual(before);
});

test('completes what a pass that was interrupted has begun', async () => {
  const objectId = await addPackets(1_200, NOW_MS - 9 * DAY_MS, 1_000);
  const before = await readAll(objectId);
  const lost = async (): Promise<void> => {
    throw new Error('the lease is lost');
  };
  await expect(createPass(optionsAt(NOW_MS), lost, never).run()).rejects.toThrow('the lease is lost');
  expect(await bucketsOf(objectId)).toEqual([]);
  expect(await findPending(database)).not.toEqual([]);
  expect(await readAll(objectId)).toEqual(before);
  await pack();
  expect(await findPending(database)).toEqual([]);
  expect(await bucketsOf(objectId)).toEqual([1_000, 199]);
  expect(await readAll(objectId)).toEqual(before);
});

test('removes what is left of a step whose buckets were not all stored', async () => {
  const objectId = await addPackets(1_200, NOW_MS - 9 * DAY_MS, 1_000);
  const stop = new AbortController();
  const lost = async (): Promise<void> => {
    throw new Error('stopped');
  };
  await createPass(optionsAt(NOW_MS), lost, stop.signal)
    .run()
    .catch(() => undefined);
  await database.db.collection('packedPackets').updateMany({}, { $set: { 'mark.buckets': 2 } });
  const before = await readAll(objectId);
  await pack();
  expect(await findPending(database)).toEqual([]);
  expect(await readAll(objectId)).toEqual(before);
});

test('packs once where two instances work on the same object without a lease', async () => {
  const objectId = await addPackets(2_500, NOW_MS - 9 * DAY_MS, 1_000);
  const before = await readAll(objectId);
  await Promise.allSettled([pack(), pack(), pack()]);
  await pack();
  expect(await readAll(objectId)).toEqual(before);
  expect((await bucketsOf(objectId)).reduce((sum, packets) => sum + packets, 0)).toBe(2_499);
});

test('does nothing with the lease of another instance', async () => {
  const objectId = await addPackets(1_200, NOW_MS - 9 * DAY_MS, 1_000);
  const lease = await acquireLease(database, PACKING_LEASE, 30_000);
  await expect(
    createPass(optionsAt(NOW_MS), (lease as NonNullable<typeof lease>).fence, never).run(),
  ).resolves.toBeUndefined();
  expect(await bucketsOf(objectId)).toEqual([1_000, 199]);
  await lease?.release();
  await addPackets(1_200, NOW_MS - 8 * DAY_MS, 1_000, new ObjectId(objectId));
  await expect(createPass(optionsAt(NOW_MS), (lease as NonNullable<typeof lease>).fence, never).run()).rejects.toThrow(
    /lease/,
  );
  expect(await bucketsOf(objectId)).toEqual([1_000, 199]);
});

test('packs again and again while it runs, and stops', async () => {
  const objectId = await addPackets(1_200, NOW_MS - 9 * DAY_MS, 1_000);
  const before = await readAll(objectId);
  let passes = 0;
  const metrics = { ...NO_PACKING_METRICS, passed: () => void passes++ };
  const job = startPacking({ ...optionsAt(NOW_MS), packAfterMs: 1_000, metrics });
  await until(() => passes >= 2, 'two passes');
  await job.stop();
  expect(await bucketsOf(objectId)).toEqual([1_000, 199]);
  expect(await readAll(objectId)).toEqual(before);
  expect(lines).toEqual([]);
});

test('continues past a bucket that is damaged, and says so', async () => {
  const object = new ObjectId();
  const objectId = await addPackets(301, NOW_MS - 9 * DAY_MS, 1_000, object);
  await pack();
  await database.db.collection('packedPackets').updateOne({ _oid: object }, { $set: { head: 'x' } });
  await addPackets(500, NOW_MS - 8 * DAY_MS, 1_000, object);
  const other = await addPackets(300, NOW_MS - 8 * DAY_MS, 1_000);
  await pack();
  expect(lines.splice(0)).toEqual(['rows cannot be added to packed history that is damaged']);
  expect(await bucketsOf(other)).toEqual([299]);
  expect(await readStoredRows(database, objectId)).toHaveLength(501);
});

test('divides a bucket into halves as large as it was, and goes on with other objects', async () => {
  const object = await addPackets(1_000, NOW_MS - 9 * DAY_MS, 1_000);
  await addPackets(1, NOW_MS, 1, new ObjectId(object));
  await pack();
  expect(await bucketsOf(object)).toEqual([1_000]);
  await addPackets(1_000, NOW_MS - 9 * DAY_MS + 500, 1_000, new ObjectId(object));
  const other = await addPackets(1_001, NOW_MS - 9 * DAY_MS, 1_000);
  await addPackets(1, NOW_MS, 1, new ObjectId(other));
  const before = await readAll(object);

  await pack();

  expect([await bucketsOf(object), await bucketsOf(other)]).toEqual([[1_000, 999], [1_000]]);
  expect(await readAll(object)).toEqual(before);
});

test('passes over rows that wait in a step of another instance', async () => {
  const most = LIMITS.packingStepsPending;
  const objects = [
    await addPackets(301, NOW_MS - 9 * DAY_MS, 1_000),
    await addPackets(301, NOW_MS - 9 * DAY_MS, 1_000),
  ];
  for (const objectId of objects) {
    const rows = (await readStoredRows(database, objectId)).slice(0, 300);
    await storePending(database, { objectId, rows, replaces: null });
  }
  const before = await Promise.all(objects.map(readAll));
  Object.assign(LIMITS, { packingStepsPending: 1 });
  try {
    await pack();
    expect((await findPending(database)).length).toBe(1);
    await pack();
  } finally {
    Object.assign(LIMITS, { packingStepsPending: most });
  }
  expect(await findPending(database)).toEqual([]);
  expect(await Promise.all(objects.map(bucketsOf))).toEqual([[300], [300]]);
  expect(await Promise.all(objects.map(readAll))).toEqual(before);
});
