/** Rows become buckets and rows again: every packet is there exactly once, byte for byte, whatever happens in between. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Binary, Double, Long, ObjectId } from 'mongodb';
import { unpack } from '../../../src/packed/unpack.js';
import { toIdFilters } from '../../../src/packets/store/bucket-ids.js';
import {
  type SpanQuery,
  type StoredSpan,
  toBucket,
  toBucketFind,
  toSpan,
  toSpanFind,
} from '../../../src/packets/store/buckets.js';
import { toNamesFind } from '../../../src/packets/store/packed-repeats.js';
import { commitStep, findPending, packRows, storePending, unpackBucket } from '../../../src/packets/store/packing.js';
import { toPacketKey } from '../../../src/platform/mongo/bson/packet-key.js';
import { rawBatches } from '../../../src/platform/mongo/bson/raw-batches.js';
import { PACKET_KEY } from '../../../src/platform/mongo/bson/reader.js';
import { createClient, type Database, databaseOf } from '../../../src/platform/mongo/driver/client.js';
import { prepareCollections } from '../../../src/platform/mongo/schema/collections.js';
import { testUri } from '../../support/fixture.js';
import { packHistory, readStoredRows, HISTORY_START_MS as START_MS, storeHistory } from '../../support/packed.js';

let database: Database;

beforeAll(async () => {
  database = databaseOf(await createClient(testUri()).connect());
  await prepareCollections(database.db);
});
afterAll(async () => {
  await database.db.dropDatabase();
  await database.client.close();
});

const packets = () => database.db.collection('packets');
const buckets = () => database.db.collection('packedPackets');

const createHistory = (count: number): Promise<string> =>
  storeHistory(database, count, (nth) => ({
    online: true,
    id: 'press-7',
    speed: new Double(nth),
    count: Long.fromNumber(nth),
    'a.b': nth % 7,
    '': null,
    '%.$': { nested: [nth, 'x'] },
  }));

async function findSpans(query: SpanQuery): Promise<StoredSpan[]> {
  const found: StoredSpan[] = [];
  for await (const { documents } of rawBatches(database, toSpanFind(query))) found.push(...documents.map(toSpan));
  return found;
}

async function readPacked(objectId: string): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for (const { id } of await findSpans({ objectId })) {
    for await (const { documents } of rawBatches(database, toBucketFind(objectId, [id]))) {
      for (const document of documents) found.push(...unpack(toBucket(document)));
    }
  }
  return found;
}

/** All packets as they are stored, in rows and in buckets. */
async function readAll(objectId: string): Promise<string[]> {
  const rows = (await readStoredRows(database, objectId)).map(({ row }) => row);
  return [...(await readPacked(objectId)), ...rows].map((row) => row.toString('hex')).sort();
}

test('packs rows into buckets that hold the same bytes, and removes the rows', async () => {
  const objectId = await createHistory(2_500);
  const before = await readAll(objectId);
  expect(await packHistory(database, objectId)).toBe(3);
  expect(await readStoredRows(database, objectId)).toHaveLength(1);
  expect(await readAll(objectId)).toEqual(before);
  expect(await buckets().countDocuments({ _oid: new ObjectId(objectId), isPending: true })).toBe(0);
});

test('looks at the rows of a bucket alone, however long the history is', async () => {
  const objectId = await createHistory(5_000);
  await database.db.command({ profile: 2 });
  await packHistory(database, objectId, { toMs: START_MS + 2_999_000 });
  await database.db.command({ profile: 0 });
  const found = await database.db
    .collection('system.profile')
    .find({ ns: /[.]packets$/, op: 'remove' })
    .toArray();
  expect(found.map(({ ndeleted, docsExamined }) => [ndeleted, docsExamined])).toEqual([
    [1_000, 1_000],
    [1_000, 1_000],
    [1_000, 1_000],
  ]);
});

test('finds the buckets of an interval, in both orders, by keys of the index alone', async () => {
  const objectId = await createHistory(41);
  await packHistory(database, objectId, { bucketPackets: 10 });
  const startsOf = async (query: Omit<SpanQuery, 'objectId'>): Promise<number[]> =>
    (await findSpans({ objectId, ...query })).map(({ from }) => (from.timeMs - START_MS) / 1_000);
  expect(await startsOf({})).toEqual([0, 10, 20, 30]);
  expect(await startsOf({ isDescending: true, limit: 3 })).toEqual([30, 20, 10]);
  expect(await startsOf({ time: { from: START_MS + 19_000, to: START_MS + 20_000 } })).toEqual([10, 20]);
  expect(await startsOf({ time: { above: START_MS + 19_000, below: START_MS + 30_000 } })).toEqual([20]);
  const [first] = await findSpans({ objectId, limit: 1 });
  expect(first).toMatchObject({
    objectId,
    packets: 10,
    from: { timeMs: START_MS, stampUs: START_MS * 1_000 + 40 },
    to: { timeMs: START_MS + 9_000, stampUs: (START_MS + 9_000) * 1_000 + 40 },
    stamps: { from: START_MS * 1_000 + 40, to: (START_MS + 9_000) * 1_000 + 40 },
  });
  const queries: SpanQuery[] = [
    { objectId, time: { from: START_MS, to: START_MS + 5_000 } },
    { objectId, isDescending: true, limit: 1 },
  ];
  for (const query of queries) {
    const { executionStats } = await database.db.command({ explain: toSpanFind(query), verbosity: 'executionStats' });
    expect(executionStats).toMatchObject({ totalDocsExamined: 0 });
    expect(executionStats.nReturned).toBeGreaterThan(0);
  }
  // Of a packet by its `_id`, only its bucket is read.
  const start = Buffer.from((first as StoredSpan).id.value()).subarray(0, PACKET_KEY.OWN_BYTES);
  for (const filter of toIdFilters(objectId, [start])) {
    const find = toNamesFind({ ...filter, isPending: false });
    const { executionStats } = await database.db.command({ explain: find, verbosity: 'executionStats' });
    expect(executionStats).toMatchObject({ totalDocsExamined: 1, nReturned: 1 });
  }
});

test('reads only the columns that were asked for, whatever their names are', async () => {
  const objectId = await createHistory(20);
  await packHistory(database, objectId);
  const [span] = await findSpans({ objectId });
  for await (const { documents } of rawBatches(
    database,
    toBucketFind(objectId, [(span as StoredSpan).id], ['a.b', '', '%.$']),
  )) {
    const names = documents.flatMap((document) => [...toBucket(document).columns.keys()]);
    expect(names.sort()).toEqual(['', '%.$', 'a.b']);
  }
});

test('adds rows to a bucket by replacing it', async () => {
  const objectId = await createHistory(300);
  const before = await readAll(objectId);
  await packHistory(database, objectId, { toMs: START_MS + 99_000 });
  const [first] = await findSpans({ objectId });
  const rows = (await readStoredRows(database, objectId)).slice(0, 100);
  expect(await packRows(database, { objectId, rows, replaces: (first as StoredSpan).id })).toBe(true);
  expect((await findSpans({ objectId })).map(({ packets }) => packets)).toEqual([200]);
  expect(await readAll(objectId)).toEqual(before);
});

test('turns a bucket into the rows that it was made of', async () => {
  const objectId = await createHistory(50);
  const before = await readAll(objectId);
  await packHistory(database, objectId);
  const [span] = await findSpans({ objectId });
  expect(await unpackBucket(database, objectId, (span as StoredSpan).id)).toBe(49);
  expect((await readStoredRows(database, objectId)).map(({ row }) => row.toString('hex')).sort()).toEqual(before);
  expect(await findSpans({ objectId })).toEqual([]);
  expect(await unpackBucket(database, objectId, (span as StoredSpan).id)).toBeNull();
});

test('leaves rows that would take hardly less space in a bucket', async () => {
  const object = new ObjectId();
  const documents = Array.from({ length: 100 }, (_, nth) => ({
    _id: toPacketKey(new ObjectId().toHexString(), object) as unknown as ObjectId,
    _ts: (START_MS + nth) * 1_000,
    time: START_MS + nth,
    _oid: object,
    ...Object.fromEntries(Array.from({ length: 10 }, (_, field) => [`only-${nth}-${field}`, nth])),
  }));
  await packets().insertMany(documents);
  const objectId = object.toHexString();
  const rows = await readStoredRows(database, objectId);
  expect(await packRows(database, { objectId, rows, replaces: null })).toBe(false);
  expect(await buckets().countDocuments({ _oid: object })).toBe(0);
});

const changes: readonly [string, (key: ObjectId) => Promise<unknown>][] = [
  ['has changed', (_id) => packets().updateOne({ _id }, { $set: { speed: 1_000 } })],
  ['was removed', (_id) => packets().deleteOne({ _id })],
];

test.each(changes)('gives a step up where one of its rows %s after it was planned', async (_what, change) => {
  const objectId = await createHistory(30);
  const rows = await readStoredRows(database, objectId);
  const pending = await storePending(database, { objectId, rows, replaces: null });
  const { key } = rows[7] as (typeof rows)[number];
  await change(new Binary(key, 0x80) as unknown as ObjectId);
  const before = await readAll(objectId);
  expect(await commitStep(database, pending as NonNullable<typeof pending>)).toBeNull();
  expect(await readAll(objectId)).toEqual(before);
  expect(await buckets().countDocuments({ _oid: new ObjectId(objectId) })).toBe(0);
});

test('completes a step that another instance has begun, once', async () => {
  const objectId = await createHistory(30);
  const before = await readAll(objectId);
  const rows = (await readStoredRows(database, objectId)).slice(0, 20);
  await storePending(database, { objectId, rows, replaces: null });
  expect(await readAll(objectId)).toEqual(before);
  const [found, ...others] = await findPending(database);
  expect(others).toEqual([]);
  const outcomes = await Promise.all([1, 2].map(() => commitStep(database, found as NonNullable<typeof found>)));
  expect(outcomes.filter((outcome) => outcome !== null)).toHaveLength(1);
  expect(await readAll(objectId)).toEqual(before);
  expect((await findSpans({ objectId })).map(({ packets }) => packets)).toEqual([20]);
});

test('commits only one of two steps that pack the same rows', async () => {
  const objectId = await createHistory(60);
  const before = await readAll(objectId);
  const rows = await readStoredRows(database, objectId);
  const steps = await Promise.all(
    [rows.slice(0, 40), rows.slice(10, 50)].map((some) =>
      storePending(database, { objectId, rows: some, replaces: null }),
    ),
  );
  const outcomes = await Promise.all(steps.map((step) => commitStep(database, step as NonNullable<typeof step>)));
  expect(outcomes.filter((outcome) => outcome !== null)).toHaveLength(1);
  expect(await readAll(objectId)).toEqual(before);
  expect(await findPending(database)).toEqual([]);
});
