/** Each step of the compression of packets continues from what is stored, whatever happened before. */
import { afterEach, expect, test } from '@jest/globals';
import { BSON, type Db, type Document, Int32, Long, MongoClient, ObjectId } from 'mongodb';
import {
  acceptInserts,
  createCopy,
  exchange,
  readCatalog,
  refuseInserts,
  type Stored,
} from '../../src/db/compression/catalog.js';
import { type CompressionJob, startCompression } from '../../src/db/compression/compression.js';
import { requestCompression, withdrawCompression } from '../../src/db/compression/state.js';
import { openTail } from '../../src/db/compression/tail.js';
import { type Database, databaseOf } from '../../src/db/driver/client.js';
import { insertPackets } from '../../src/db/packets/inserts.js';
import { LIMITS } from '../../src/model/limits.js';
import { testUri } from '../support/fixture.js';
import {
  COMPRESSED,
  createUncompressed,
  findCollections,
  findCompression,
  waitForStage,
} from '../support/uncompressed.js';
import { until } from '../support/until.js';

const BATCHES = { compressionBatch: 10, compressionCompareBatch: 10 };
Object.assign(LIMITS, { ...BATCHES, compressionCheckMs: 50, compressionPauseRatio: 0 });

/** The position of a change that there never was, just before one that there was: nothing resumes from there. */
async function findLost({ db }: Database): Promise<Document> {
  const stream = db.watch();
  // It is open as soon as it has been asked.
  await stream.tryNext();
  await db.collection('packets').insertOne(packetAt(70));
  const { _id } = await stream.next();
  await stream.close();
  const { _data } = _id as { _data: string };
  // Its key ends with that of the packet.
  const lost = _data.replace(/46(0*4)$/, '45$1');
  expect(lost).not.toBe(_data);
  return { _data: lost };
}

const PACKETS = 45;
const object = new ObjectId();
const log = { info: () => undefined, warn: () => undefined };
const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

const packetAt = (n: number) => ({
  ...{ _id: new ObjectId(n.toString(16).padStart(24, '0')), _oid: object, time: n, _ts: Long.fromNumber(n) },
  ...{ n: new Int32(n), share: n / 2, text: `packet ${n}` },
});
const packetsAt = (...numbers: number[]) => numbers.map(packetAt);
const upTo = (count: number) => Array.from({ length: count }, (_, n) => n);

interface Prepared {
  readonly database: Database;
  readonly db: Db;
  /** The name of the copy. */
  readonly copy: string;
  /** Changes the stored state, and starts a job that continues from it. */
  continueFrom(state: object): Promise<CompressionJob>;
}

/** An uncompressed collection, an empty copy of it, and a position from before both changed. */
async function prepare(): Promise<Prepared> {
  const uri = testUri();
  const client = await new MongoClient(uri).connect();
  endings.push(
    () => client.close(),
    () => client.db().dropDatabase(),
  );
  const [database, db] = [databaseOf(client), client.db()];
  await createUncompressed(db);
  await db.collection('packets').createIndex({ _oid: 1, time: 1, _ts: 1 });
  await db.collection('packets').insertMany(packetsAt(...upTo(PACKETS)));
  await requestCompression(database);
  const tail = await openTail(database, null);
  await tail.close();
  const copy = await createCopy(database);
  const { packets } = await readCatalog(database);
  const state = { source: packets?.uuid, copy: copy.uuid, token: tail.start, total: PACKETS, owner: 'a former one' };
  return {
    ...{ database, db, copy: copy.name },
    async continueFrom(more) {
      const installation = db.collection<{ _id: string }>('installation');
      await installation.updateOne({ _id: 'compression' }, { $set: { ...state, ...more } });
      const job = startCompression({ database, log });
      endings.push(() => job.stop());
      return job;
    },
  };
}

const insertInto = (db: Db, name: string, numbers: readonly number[]) =>
  db.collection(name).insertMany(packetsAt(...numbers), { bypassDocumentValidation: true });

async function expectPackets(db: Db, numbers: readonly number[]): Promise<void> {
  await waitForStage(db, 'done');
  const stored = await db
    .collection('packets')
    .find({}, { raw: true, sort: { _id: 1 } })
    .toArray();
  const expected = await db.collection('expected');
  await expected.insertMany(packetsAt(...numbers));
  const bytes = await expected.find({}, { raw: true, sort: { _id: 1 } }).toArray();
  expect(stored.map((packet) => Buffer.from(packet as never))).toEqual(bytes.map((one) => Buffer.from(one as never)));
  expect(await findCollections(db)).toEqual(COMPRESSED);
}

test('gives up after ten attempts at the exchange, and accepts inserts', async () => {
  const { db, continueFrom } = await prepare();
  await continueFrom({ stage: 'exchanging', attempts: 10 });
  await waitForStage(db, 'failed');
  expect((await findCompression(db))?.problem).toBe('the collections could not be exchanged in 10 attempts');
  expect(await findCollections(db)).not.toEqual(COMPRESSED);
  await db.collection('packets').insertOne(packetAt(100));
});

test('copies what is left, and the types of all values', async () => {
  const { db, copy, continueFrom } = await prepare();
  await insertInto(db, copy, upTo(20));
  await continueFrom({ stage: 'copying', from: { _id: packetAt(19)._id }, copied: 20 });
  await expectPackets(db, upTo(PACKETS));
});

test.each([
  ['the end of the collection', null],
  ['the packet that was the last one', { _id: packetAt(PACKETS - 1)._id }],
])(
  'applies packets that were stored and removed behind and before the place where it copies, up to %s',
  async (_, end) => {
    const { db, copy, continueFrom } = await prepare();
    await insertInto(db, copy, upTo(20));
    const packets = db.collection('packets');
    await packets.deleteMany({ n: { $in: [3, 19, 30, PACKETS - 1] } });
    await packets.insertMany(packetsAt(3, 100));
    await continueFrom({ stage: 'copying', from: { _id: packetAt(19)._id }, end, copied: 20 });
    const kept = upTo(PACKETS - 1).filter((n) => n !== 19 && n !== 30);
    await expectPackets(db, [...kept, 100]);
  },
);

test('repairs a copy that lacks packets, or has others', async () => {
  const { db, copy, continueFrom } = await prepare();
  await insertInto(db, copy, [...upTo(PACKETS).filter((n) => n % 7 > 0), 50, 60]);
  await db.collection('packets').deleteOne({ n: 1 });
  await continueFrom({ stage: 'comparing', copied: PACKETS });
  await expectPackets(
    db,
    upTo(PACKETS).filter((n) => n !== 1),
  );
});

test('copies what was there at the beginning, and waits with the exchange, while more is stored than the copy can take', async () => {
  const limits = { ...LIMITS };
  const { warn } = log;
  endings.push(() => [Object.assign(LIMITS, limits), Object.assign(log, { warn })]);
  Object.assign(LIMITS, { compressionFollowPages: 2, compressionBehindMs: 1, compressionLogMs: 0 });
  Object.assign(LIMITS, { compressionCompareBatch: 2_000 });
  const warned: { stage?: string; behindMs?: number }[] = [];
  Object.assign(log, { warn: (details: object) => void warned.push(details) });
  const { db, continueFrom } = await prepare();
  let [isStoring, stored] = [true, 0];
  const store = async (count: number): Promise<void> => {
    await db.collection('packets').insertMany(packetsAt(...upTo(count).map((n) => 1_000 + stored + n)));
    stored += count;
  };
  await store(1_000);
  const storing = (async () => {
    while (isStoring) await store(100);
  })();
  endings.push(() => {
    isStoring = false;
  });
  const slow = await continueFrom({ stage: 'copying', end: { _id: packetAt(PACKETS - 1)._id } });
  await waitForStage(db, 'comparing');
  expect(await findCompression(db)).toMatchObject({ copied: PACKETS });
  const isBehind = () => warned.some(({ stage, behindMs = 0 }) => stage === 'exchanging' && behindMs > 0);
  await until(isBehind, 'it to say that it waits', 60_000);
  expect(await findCompression(db)).toMatchObject({ stage: 'exchanging', attempts: 0 });
  isStoring = false;
  await storing;
  await slow.stop();
  Object.assign(LIMITS, { compressionBatch: 1_000 });
  await continueFrom({});
  await expectPackets(db, [...upTo(PACKETS), ...upTo(stored).map((n) => 1_000 + n)]);
}, 180_000);

test('begins again when the database no longer knows the changes', async () => {
  const { database, db, copy, continueFrom } = await prepare();
  await insertInto(db, copy, [71]);
  const token = await findLost(database);
  await continueFrom({ stage: 'copying', token, from: { _id: packetAt(40)._id }, copied: 41, attempts: 10 });
  await expectPackets(db, [...upTo(PACKETS), 70]);
  expect(await findCompression(db)).toMatchObject({ copied: PACKETS + 1, attempts: 1 });
});

test('exchanges the collections when inserts were refused already', async () => {
  const { database, db, copy, continueFrom } = await prepare();
  await insertInto(db, copy, upTo(PACKETS));
  await db.collection('packets').insertMany(packetsAt(80));
  const { packets } = await readCatalog(database);
  await refuseInserts(database, packets as NonNullable<typeof packets>);
  await db.collection('packets').deleteOne({ n: 8 });
  await continueFrom({ stage: 'exchanging', copied: PACKETS });
  await expectPackets(db, [...upTo(PACKETS).filter((n) => n !== 8), 80]);
});

test('applies what came between the last changes and the exchange', async () => {
  const { database, db, copy, continueFrom } = await prepare();
  await insertInto(db, copy, upTo(PACKETS));
  await db.collection('packets').deleteMany({ n: { $in: [4, 5] } });
  await db.collection('packets').insertMany(packetsAt(5, 90));
  const { packets, copies } = await readCatalog(database);
  await exchange(database, copies[0] as NonNullable<typeof packets>, packets as NonNullable<typeof packets>);
  await continueFrom({ stage: 'exchanging', copied: PACKETS, isUnwanted: true });
  await expectPackets(db, [...upTo(PACKETS).filter((n) => n !== 4), 90]);
});

test('applies removals of packets whose ids differ in a byte that is no text', async () => {
  const { database, db, copy, continueFrom } = await prepare();
  await db.collection('packets').insertMany(packetsAt(0x80, 0x81));
  await insertInto(db, copy, [...upTo(PACKETS), 0x80, 0x81]);
  await db.collection('packets').deleteMany({ n: { $in: [0x80, 0x81] } });
  const { packets, copies } = await readCatalog(database);
  await exchange(database, copies[0] as NonNullable<typeof packets>, packets as NonNullable<typeof packets>);
  await continueFrom({ stage: 'exchanging', copied: PACKETS });
  await expectPackets(db, upTo(PACKETS));
});

test('lets no former owner exchange the collections after another one has taken over', async () => {
  const { database, db, copy, continueFrom } = await prepare();
  const { packets, copies } = await readCatalog(database);
  await continueFrom({ stage: 'copying' });
  await until(async () => (await readCatalog(database)).copies[0]?.name !== copy);
  const late = exchange(database, copies[0] as NonNullable<typeof packets>, packets as NonNullable<typeof packets>);
  await expect(late).rejects.toMatchObject({ codeName: 'CollectionUUIDMismatch' });
  await expectPackets(db, upTo(PACKETS));
});

test('lets no late command of a former owner change the packets after the exchange', async () => {
  const { database, db, continueFrom } = await prepare();
  const { packets, copies } = await readCatalog(database);
  const former = packets as NonNullable<typeof packets>;
  await continueFrom({ stage: 'copying' });
  await waitForStage(db, 'done');
  const late = [refuseInserts(database, former), acceptInserts(database, former)];
  late.push(exchange(database, copies[0] as typeof former, former));
  for (const one of late) await expect(one).rejects.toMatchObject({ codeName: 'CollectionUUIDMismatch' });
  await expectPackets(db, upTo(PACKETS));
});

test('leaves packets alone that were removed and sent again after inserts were accepted', async () => {
  const { database, db, copy, continueFrom } = await prepare();
  await insertInto(db, copy, upTo(PACKETS));
  const { packets, copies } = await readCatalog(database);
  await exchange(database, copies[0] as Stored, packets as Stored);
  await acceptInserts(database, (await readCatalog(database)).packets as Stored);
  // Both changes of it, and as many between them that it reads them one after the other.
  await db.collection('packets').deleteOne({ n: 7 });
  await db.collection('packets').insertMany(packetsAt(...upTo(12).map((n) => 100 + n)));
  await db.collection('packets').insertMany(packetsAt(7));
  await continueFrom({ stage: 'exchanging', copied: PACKETS });
  await expectPackets(db, [...upTo(PACKETS), ...upTo(12).map((n) => 100 + n)]);
});

test.each(['copying', 'comparing'])(
  'accepts inserts that a former owner refuses late, while it is %s',
  async (stage) => {
    // Each pause is far longer than a look.
    Object.assign(LIMITS, { compressionPauseRatio: 50 });
    endings.push(() => Object.assign(LIMITS, { compressionPauseRatio: 0 }));
    const { database, db, copy, continueFrom } = await prepare();
    if (stage === 'comparing') await insertInto(db, copy, upTo(PACKETS));
    const { packets } = await readCatalog(database);
    await continueFrom({ stage });
    await until(
      async () => (await findCompression(db))?.from !== undefined && (await findCompression(db))?.from !== null,
    );
    await refuseInserts(database, packets as Stored);
    await until(async () => (await readCatalog(database)).packets?.refusesInserts === false);
    expect((await findCompression(db))?.stage).toBe(stage);
  },
);

test('refuses inserts also where a rule of the collection would only be a warning', async () => {
  const { database, db } = await prepare();
  await db.command({ collMod: 'packets', validationLevel: 'off', validationAction: 'warn' });
  const { packets } = await readCatalog(database);
  await refuseInserts(database, packets as Stored);
  await expect(db.collection('packets').insertMany(packetsAt(80))).rejects.toMatchObject({ code: 121 });
  await acceptInserts(database, packets as Stored);
  await db.collection('packets').insertMany(packetsAt(80));
});

test('gives stored packets their own outcome when others are refused for too long', async () => {
  const { database, db } = await prepare();
  const before = LIMITS.databaseAnswerMs;
  Object.assign(LIMITS, { databaseAnswerMs: 1_000 });
  endings.push(() => Object.assign(LIMITS, { databaseAnswerMs: before }));
  await db.command({ collMod: 'packets', validator: { n: { $ne: 81 } } });
  const writes = packetsAt(80, 81, 82).map((packet) => ({ bson: BSON.serialize(packet) }));
  const [stored, refused, other] = await insertPackets(database, writes);
  expect([stored, other]).toEqual([{ result: null }, { result: null }]);
  expect(refused).toMatchObject({ error: { status: 503 } });
});

test.each(['copying', 'comparing', 'exchanging'])(
  'compresses packets when it is asked for again before it has given up, while it is %s',
  async (stage) => {
    const { database, db, copy, continueFrom } = await prepare();
    if (stage !== 'copying') await insertInto(db, copy, upTo(PACKETS));
    await withdrawCompression(database);
    await requestCompression(database);
    await continueFrom({ stage, copied: PACKETS, from: null });
    await expectPackets(db, upTo(PACKETS));
  },
);

test('begins again when it is asked for while it gives up', async () => {
  const { database, db, copy, continueFrom } = await prepare();
  await insertInto(db, copy, upTo(20));
  await withdrawCompression(database);
  // Who reads a collection in a transaction keeps others from dropping it.
  await db.createCollection('packets_zstd_left');
  const session = database.client.startSession();
  endings.push(() => session.endSession());
  session.startTransaction();
  await db.collection('packets_zstd_left').findOne({}, { session });
  await continueFrom({ stage: 'copying', from: { _id: packetAt(19)._id }, copied: 20 });
  const drops = { currentOp: 1, 'command.drop': 'packets_zstd_left' };
  await until(async () => (await database.admin.command(drops)).inprog.length > 0, 'it to give up');
  await requestCompression(database);
  await session.abortTransaction();
  await expectPackets(db, upTo(PACKETS));
  expect(await findCompression(db)).toMatchObject({ isUnwanted: false, copied: PACKETS });
});

test('refuses an index of the operator that the copy could violate for a moment, and says which', async () => {
  const { db, continueFrom } = await prepare();
  await db.collection('packets').createIndex({ n: 1 }, { name: 'numbers', unique: true });
  await continueFrom({ stage: 'requested', source: null, copy: null, token: null });
  await waitForStage(db, 'failed');
  expect((await findCompression(db))?.problem).toBe('the collection packets has the unique index numbers');
  expect(await findCollections(db)).toMatchObject({ copies: 0, validator: undefined });
});

test('refuses such an index also before the exchange', async () => {
  const { db, copy, continueFrom } = await prepare();
  await insertInto(db, copy, upTo(PACKETS));
  await db.collection('packets').createIndex({ n: 1 }, { name: 'numbers', unique: true });
  await continueFrom({ stage: 'exchanging', copied: PACKETS });
  await waitForStage(db, 'failed');
  expect((await findCompression(db))?.problem).toBe('the collection packets has the unique index numbers');
  expect(await findCollections(db)).toMatchObject({ copies: 0, validator: undefined });
});

const OLDER = { _id: 'an older one', seen: new Date(Date.now() + 3_600_000) };

test('does not begin while an instance runs that would lose packets', async () => {
  const { db, continueFrom } = await prepare();
  await db.collection<{ _id: string }>('instances').insertOne(OLDER);
  await continueFrom({ stage: 'requested', source: null, copy: null, token: null });
  await waitForStage(db, 'failed');
  expect((await findCompression(db))?.problem).toMatch(/^an instance of an older version is running/);
  expect(await findCollections(db)).toMatchObject({ copies: 0, validator: undefined });
});

test('does not refuse inserts while an instance runs that would lose packets, and goes on when it has ended', async () => {
  const { database, db, continueFrom } = await prepare();
  const instances = db.collection<{ _id: string }>('instances');
  await instances.insertMany([OLDER, { ...OLDER, _id: 'a present one', waits: true } as never]);
  const { warn } = log;
  endings.push(() => Object.assign(log, { warn }));
  const warned = new Promise<unknown>((resolve) => Object.assign(log, { warn: resolve }));
  await continueFrom({ stage: 'copying' });
  expect(await warned).toMatchObject({ err: { status: 503 } });
  expect(await findCompression(db)).toMatchObject({ stage: 'exchanging' });
  expect((await readCatalog(database)).packets?.refusesInserts).toBe(false);
  await instances.deleteOne({ _id: OLDER._id });
  await expectPackets(db, upTo(PACKETS));
});
