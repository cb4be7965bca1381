/** Reads of packed history are bounded as those of rows: in time, however many buckets they need, and in the turns that they take. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Binary, ObjectId } from 'mongodb';
import { LIMITS } from '../../../src/core/limits.js';
import type { Page } from '../../../src/core/list.js';
import { pack } from '../../../src/packed/pack.js';
import { createPackedRepeats } from '../../../src/packets/packed-repeats.js';
import type { Packet } from '../../../src/packets/packet.js';
import { toIdFields } from '../../../src/packets/store/bucket-ids.js';
import { bucketRuns, findSpans } from '../../../src/packets/store/bucket-runs.js';
import { BUCKETS, toBucketDocument } from '../../../src/packets/store/buckets.js';
import { LATEST_FIRST, type PacketReading } from '../../../src/packets/store/query.js';
import { countPackets, findFirstPacket, findNamedPackets, readPackets } from '../../../src/packets/store/reader.js';
import { rawBatches } from '../../../src/platform/mongo/bson/raw-batches.js';
import { PACKET_KEY } from '../../../src/platform/mongo/bson/reader.js';
import type { Database } from '../../../src/platform/mongo/driver/client.js';
import { endAllWithin, endWithin } from '../../../src/platform/mongo/driver/deadline.js';
import { NOW } from '../../../src/platform/mongo/driver/snapshot.js';
import { connectDatabase } from '../../../src/platform/mongo/schema/connect.js';
import { testUri } from '../../support/fixture.js';
import { HISTORY_START_MS, readStoredRows, storeHistory } from '../../support/packed.js';

/** More commands than any database answers in `LIMITED_MS`, each of which is answered sooner. */
const BUCKETS_OF_HISTORY = 2_000;
const LIMITED_MS = 150;
let database: Database;
let objectId: string;

// What is not refused has as long as a test waits: other processes may keep the machine busy.
Object.assign(LIMITS, { databaseOperationMs: 60_000, databaseAnswerMs: 60_000 });

beforeAll(async () => {
  database = await connectDatabase(testUri());
  objectId = await storeBuckets(BUCKETS_OF_HISTORY);
});
afterAll(async () => {
  await database.db.dropDatabase();
  await database.client.close();
});

/** An object whose packets are in buckets of their own. */
async function storeBuckets(count: number): Promise<string> {
  const stored = await storeHistory(database, count, (nth) => ({ speed: nth, mode: 'a' }));
  const rows = await readStoredRows(database, stored);
  const buckets = rows.map((row) => toBucketDocument(stored, pack([row.row]), [row], null));
  await database.db.collection('packets').deleteMany({ _oid: new ObjectId(stored) });
  await database.db.collection(BUCKETS).insertMany(buckets);
  return stored;
}

const NEVER: Page['filters'] = [{ path: 'speed', values: [{ text: '-1', value: -1 }] }];
const selecting = (filters: Page['filters']) => ({ filters, search: null, fromMs: null, toMs: null, only: null });
const reading = (more: Partial<PacketReading>): PacketReading => ({ objectIds: [objectId], fields: null, ...more });

async function readAll(more: Partial<PacketReading>): Promise<number> {
  let read = 0;
  for await (const batch of readPackets(database, reading(more))) read += batch.starts().length;
  return read;
}

const READS: Record<string, () => Promise<unknown>> = {
  'a list in another order than that of time': () => readAll({ limit: 10, sort: { path: 'speed', descending: true } }),
  'a list with a filter': () => readAll({ limit: 10, selection: selecting(NEVER) }),
  'a count with a filter': () => countPackets(database, { objectIds: [objectId], selection: selecting(NEVER) }),
  'the first packet with a filter': () =>
    findFirstPacket(database, reading({ sort: LATEST_FIRST, selection: selecting(NEVER) })),
};

test.each(Object.keys(READS))('refuses %s that needs too many buckets', async (name) => {
  const read = READS[name] as () => Promise<unknown>;
  const usual = { ...LIMITS };
  Object.assign(LIMITS, { databaseOperationMs: LIMITED_MS, databaseAnswerMs: LIMITED_MS });
  try {
    await expect(read()).rejects.toMatchObject({ status: 503, message: expect.stringMatching(/in time/) });
  } finally {
    Object.assign(LIMITS, usual);
  }
});

test('answers what needs fewer buckets', async () => {
  const objectIds = [await storeBuckets(50)];
  const last = reading({ objectIds, limit: 1, sort: { path: 'speed', descending: true } });
  expect(await readAll({ ...last, time: { to: 10 ** 14 } })).toBe(1);
  expect(await countPackets(database, { objectIds, selection: selecting(NEVER) })).toBe(0);
});

test('ends work whose time is over', async () => {
  const ask = { aggregate: 1, pipeline: [{ $documents: [] }], cursor: {} };
  const ended = new Promise((resolve) => {
    const work = async (reader: Database): Promise<never> => {
      for (;;) for await (const _ of rawBatches(reader, ask)) expect(reader.stop).toBeDefined();
    };
    const all = async function* (reader: Database): AsyncGenerator<never> {
      yield await work(reader).catch((error) => {
        resolve(error);
        throw error;
      });
    };
    endAllWithin(database, 20, all)
      .next()
      .catch(() => undefined);
  });
  await expect(ended).resolves.toMatchObject({ status: 503 });
  const gone = new AbortController();
  const waiting = endWithin({ ...database, stop: gone.signal }, 60_000, async (reader) => {
    gone.abort(new Error('the client has gone'));
    for await (const _ of rawBatches(reader, ask)) throw new Error('a command has begun');
  });
  await expect(waiting).rejects.toThrow('the client has gone');
});

test('recognizes a repeat behind forged digests, and ends a search among too many', async () => {
  const source = { objectId, ownId: 'forger', groupId: new ObjectId().toHexString() };
  const last = await findLastId();
  const stored = database.db.collection(BUCKETS);
  // As if the `_id`s of each bucket were chosen so that their digests are that of another packet.
  await stored.updateMany({ _oid: new ObjectId(objectId) }, { $set: { chosen: digestsOf([last, OTHER]) } });
  const repeats = createPackedRepeats(database);
  const find = (id: Buffer) =>
    repeats.find(source, [{ _id: id.toString('hex'), time: HISTORY_START_MS } as unknown as Packet]);
  const found = await find(last);
  expect([...found.values()]).toMatchObject([{ speed: BUCKETS_OF_HISTORY - 1 }]);
  expect((await find(OTHER)).size).toBe(0);
  const usual = { ...LIMITS };
  Object.assign(LIMITS, { databaseAnswerMs: 20 });
  try {
    await expect(find(OTHER)).rejects.toMatchObject({ status: 503 });
  } finally {
    Object.assign(LIMITS, usual);
  }
});

/** The `_id` of the last packet, by which that of its bucket begins. */
async function findLastId(): Promise<Buffer> {
  const last = { sort: { 'to.time': -1 } } as const;
  const bucket = await database.db.collection(BUCKETS).findOne({ _oid: new ObjectId(objectId) }, last);
  const { _id } = bucket as unknown as { _id: Binary };
  return Buffer.from(_id.value()).subarray(0, PACKET_KEY.OWN_BYTES);
}

const OTHER = Buffer.from('c0ffee000000000000000001', 'hex');

test('refuses readers of packets by `_id` that need too many buckets, more than may wait', async () => {
  await database.db
    .collection(BUCKETS)
    .updateMany({ _oid: new ObjectId(objectId) }, { $set: { chosen: digestsOf([OTHER]) } });
  const name = { objectId, packetId: OTHER.toString('hex') };
  const reads = Array.from({ length: 10 * LIMITS.packedNamesWaitingPerCaller }, () =>
    findNamedPackets(database, [name], { fields: null }),
  );
  const ended = await Promise.allSettled(reads);
  const refused = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason.status] : []));
  expect(refused).toContain(429);
  expect(refused.filter((status) => status !== 429 && status !== 503)).toEqual([]);
  expect(ended.flatMap((end) => (end.status === 'fulfilled' ? end.value : []))).toEqual([]);
});

const digestsOf = (ids: readonly Buffer[]): number[] =>
  toIdFields(ids.map((key) => ({ key, timeMs: 0, stampUs: 0 }))).chosen;

test('lets others run between buckets that are read together', async () => {
  const found = await findSpans({ database, options: {}, query: reading({}), isDescending: false }, objectId, NOW);
  const names = new Set(['_id', 'time', '_ts']);
  const buckets = { database, options: {}, query: reading({}), isDescending: false, names };
  const all = { ...buckets, question: null, projection: null, keptBytes: LIMITS.packedReadBytes };
  let opened = 0;
  if (found.spans === null) throw new Error('there are no buckets');
  for await (const run of bucketRuns(all, { snapshot: found.snapshot, spans: found.spans })) {
    let hasTurned = false;
    setImmediate(() => {
      hasTurned = true;
    });
    await run.open();
    expect(hasTurned).toBe(true);
    if (++opened === 3 * LIMITS.bucketsRead) break;
  }
  expect(opened).toBe(3 * LIMITS.bucketsRead);
});
