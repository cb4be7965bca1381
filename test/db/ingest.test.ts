/** Packets are stored in groups; each sender is answered as if it had been alone. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type Binary, type Document, MongoClient, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { createIngest, type Ingest } from '../../src/packets/ingest.js';
import { createStampClock, type Message, type PacketSource } from '../../src/packets/packet.js';
import { packetIdIn, toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { type Answer, useService } from '../support/fixture.js';
import { until } from '../support/until.js';

// However long a busy machine takes for all that may wait at once.
Object.assign(LIMITS, { databaseAnswerMs: 60_000 });
const service = useService();
let database: Database;
let nowMs = 1_800_000_000_000;
let ingest: Ingest;
let objects: PacketSource[];

/** How many writes the database was asked for. */
let inserts = 0;
/** When they began and ended. */
let writes: string[] = [];
let onBegin = (): void => undefined;
const nextWrite = (): Promise<void> =>
  new Promise((resolve) => {
    onBegin = resolve;
  });

beforeAll(async () => {
  const atOnce = LIMITS.packetWritesAtOnce;
  const client = new MongoClient(service.mongodbUri, { monitorCommands: true, minPoolSize: atOnce });
  let ready = 0;
  client.on('connectionReady', () => ready++);
  await client.connect();
  client.on('commandStarted', ({ commandName }) => {
    if (commandName !== 'insert') return;
    writes.push('begins');
    inserts++;
    onBegin();
  });
  client.on('commandSucceeded', ({ commandName }) => {
    if (commandName === 'insert') writes.push('ends');
  });
  database = databaseOf(client);
  // A connection that is not there yet would make a write begin later than it was asked for.
  await until(() => ready >= atOnce);
});

afterAll(() => database.client.close());

beforeEach(() => {
  ingest = createIngest(
    database,
    createStampClock(() => nowMs),
  );
  objects = Array.from({ length: 6 }, (_, at) => ({
    objectId: new ObjectId().toHexString(),
    ownId: `own-${at}`,
    groupId: new ObjectId().toHexString(),
  }));
});

const message = (n: number, id: string | null = null): Message => ({
  id,
  timeMs: null,
  online: true,
  parameters: { n },
});
const newId = () => new ObjectId().toHexString();
const at = (index: number): PacketSource => objects[index] as PacketSource;
const storedOf = (source: PacketSource) =>
  database.db
    .collection('packets')
    .find({ _oid: new ObjectId(source.objectId) })
    .sort('_ts')
    .toArray();

test('stores concurrent requests once, in the order of arrival, with few writes', async () => {
  const total = 600;
  inserts = 0;
  const answered = await Promise.all(Array.from({ length: total }, (_, n) => ingest(at(n % 6), [message(n)])));
  const packets = answered.map(({ packets: [packet] }) => packet);
  expect(packets.map((packet) => packet?.n)).toEqual(Array.from({ length: total }, (_, n) => n));
  const stamps = packets.map((packet) => packet?._ts as number);
  for (const [index, stamp] of stamps.entries())
    if (index > 0) expect(stamp).toBeGreaterThan(stamps[index - 1] as number);
  for (const [index, source] of objects.entries()) {
    const stored = await storedOf(source);
    expect(stored.map(({ n }) => n)).toEqual(Array.from({ length: total / 6 }, (_, n) => 6 * n + index));
    expect(stored.map(({ _id }) => packetIdIn(_id as unknown as Binary))).toEqual(
      packets.filter((packet) => packet?._oid === source.objectId).map((packet) => packet?._id),
    );
  }
  expect(inserts).toBeLessThan(total / 10);
});

const many = (count: number): Message[] => Array.from({ length: count }, (_, n) => message(n));

test('writes requests of one turn together', async () => {
  writes = [];
  await Promise.all([0, 1, 2].map((n) => ingest(at(n), [message(n)])));
  expect(writes).toEqual(['begins', 'ends']);
});

test('writes requests that arrive during a large write together after it', async () => {
  writes = [];
  const begins = nextWrite();
  const first = [0, 1, 2].map((n) => ingest(at(n), many(LIMITS.packetsPerWrite / 4)));
  await begins;
  await Promise.all([...first, ...[3, 4].map((n) => ingest(at(n), [message(n)]))]);
  expect(writes).toEqual(['begins', 'ends', 'begins', 'ends']);
});

test('starts a write for a single request during a small write', async () => {
  const held = newId();
  const session = database.client.startSession();
  session.startTransaction();
  // Until it is known whether this one stays, the database does not say whether another with its _id may.
  const key = toPacketKey(held, new ObjectId(at(0).objectId));
  await database.db.collection<Document>('packets').insertOne({ _id: key as unknown as ObjectId }, { session });
  const begins = nextWrite();
  const first = ingest(at(0), [message(1, held)]);
  await begins;
  const { packets } = await ingest(at(1), [message(2)]);
  expect(packets.map(({ n }) => n)).toEqual([2]);
  await session.abortTransaction();
  await session.endSession();
  expect((await first).packets.map(({ _id, n }) => ({ _id, n }))).toEqual([{ _id: held, n: 1 }]);
});

test('starts a limited number of writes beside full ones', async () => {
  writes = [];
  await Promise.all(objects.map((source) => ingest(source, many(LIMITS.packetsPerWrite))));
  const atOnce = writes.indexOf('ends');
  expect(atOnce).toBe(LIMITS.packetWritesAtOnce);
  expect(writes.filter((what) => what === 'begins').length).toBe(objects.length);
});

test('writes packets of one object one after the other', async () => {
  writes = [];
  await Promise.all([1, 2, 3].map(() => ingest(at(0), many(LIMITS.packetsPerWrite))));
  expect(writes).toEqual(['begins', 'ends', 'begins', 'ends', 'begins', 'ends']);
  const stored = await storedOf(at(0));
  expect(stored.map(({ n }) => n)).toEqual([1, 2, 3].flatMap(() => many(LIMITS.packetsPerWrite).map((_, n) => n)));
});

test('stores a packet after earlier ones of its object, however many they are', async () => {
  const order: string[] = [];
  const ended = (what: string) => () => void order.push(what);
  await Promise.all([
    ingest(at(0), many(2 * LIMITS.packetsPerWrite)).then(ended('many')),
    ingest(at(0), [message(-1)]).then(ended('one')),
    ingest(at(0), many(3 * LIMITS.packetsPerWrite)).then(ended('more')),
    ingest(at(0), [message(-2)]).then(ended('last')),
  ]);
  expect(order).toEqual(['many', 'one', 'more', 'last']);
  const numbers = [...many(2 * LIMITS.packetsPerWrite), message(-1), ...many(3 * LIMITS.packetsPerWrite), message(-2)];
  expect((await storedOf(at(0))).map(({ n }) => n)).toEqual(numbers.map(({ parameters }) => parameters.n));
});

test('lets requests of other objects overtake those that wait for their own object', async () => {
  const slow = many(LIMITS.packetsPerWrite);
  const other = [message(1)];
  const order: string[] = [];
  const ended = (what: string) => () => void order.push(what);
  await Promise.all([
    ingest(at(0), [message(0)]).then(ended('first')),
    ...[1, 2, 3].map(() => ingest(at(0), slow).then(ended('same'))),
    ingest(at(1), other).then(ended('other')),
  ]);
  expect(order.indexOf('other')).toBeLessThan(order.indexOf('same'));
  expect((await storedOf(at(0))).length).toBe(1 + 3 * LIMITS.packetsPerWrite);
});

test('answers a repeated packet of a group with the first one, and the others with their own', async () => {
  const id = newId();
  const first = await ingest(at(0), [message(1, id)]);
  const group = await Promise.all([
    ingest(at(0), [message(2)]),
    ingest(at(0), [message(3, id)]),
    ingest(at(1), [message(4)]),
    ingest(at(0), [message(5), message(6, id), message(7)]),
  ]);
  expect(group[1]).toEqual({
    packets: first.packets,
    repeated: new Set([id]),
    refused: [],
  });
  expect(group.map(({ packets }) => packets.map(({ n }) => n))).toEqual([[2], [1], [4], [5, 1, 7]]);
  expect(group.map(({ repeated }) => [...repeated])).toEqual([[], [id], [], [id]]);
  expect((await storedOf(at(0))).map(({ n }) => n)).toEqual([1, 2, 5, 7]);
  expect((await storedOf(at(1))).map(({ n }) => n)).toEqual([4]);
});

test('stores a packet once under an _id that another object has already', async () => {
  const id = newId();
  const [first] = (await ingest(at(0), [message(1, id)])).packets;
  const answered = await Promise.all([
    ingest(at(1), [message(2)]),
    ingest(at(1), [message(3, id)]),
    ingest(at(2), [message(4)]),
    ingest(at(1), [message(5, id)]),
  ]);
  expect(answered.map(({ repeated }) => [...repeated])).toEqual([[], [], [], [id]]);
  expect(answered.map(({ packets: [packet] }) => packet?.n)).toEqual([2, 3, 4, 3]);
  expect(answered[1]?.packets[0]?._id).toBe(id);
  expect((await storedOf(at(1))).map(({ n }) => n)).toEqual([2, 3]);
  expect(await ingest(at(0), [message(6, id)])).toEqual({ packets: [first], repeated: new Set([id]), refused: [] });
});

test('stores one of many concurrent packets with the same _id, and returns it to all', async () => {
  const id = newId();
  const results = await Promise.all(Array.from({ length: 50 }, (_, n) => ingest(at(0), [message(n, id)])));
  const [stored, ...more] = await storedOf(at(0));
  expect(more).toEqual([]);
  expect(new Set(results.map(({ packets: [packet] }) => packet?.n))).toEqual(new Set([stored?.n]));
  expect(results.filter(({ repeated }) => repeated.size === 0)).toHaveLength(1);
});

test('stores the same _id from two instances once', async () => {
  const other = createIngest(
    database,
    createStampClock(() => nowMs + 5_000),
  );
  const ids = Array.from({ length: 100 }, newId);
  const send = (into: Ingest) => Promise.all(ids.map((id, n) => into(at(0), [message(n, id)])));
  const [mine, theirs] = await Promise.all([send(ingest), send(other)]);
  expect(mine.map(({ packets }) => packets)).toEqual(theirs.map(({ packets }) => packets));
  expect(await storedOf(at(0))).toHaveLength(100);
});

test('stores an _id once that occurs twice in one request', async () => {
  const id = newId();
  const { packets, repeated } = await ingest(at(0), [message(1, id), message(2, id)]);
  expect(packets.map(({ n }) => n)).toEqual([1, 1]);
  expect([...repeated]).toEqual([id]);
  expect(await storedOf(at(0))).toHaveLength(1);
});

test('increases _ts even if the clock stands still or goes back', async () => {
  const stamps: number[] = [];
  for (const step of [0, 0, -3_600_000, 1, 0]) {
    nowMs += step;
    const { packets } = await ingest(at(0), [message(0), message(1)]);
    stamps.push(...packets.map(({ _ts }) => _ts));
  }
  for (const [index, stamp] of stamps.entries())
    if (index > 0) expect(stamp).toBeGreaterThan(stamps[index - 1] as number);
});

test('accepts an empty list without a write', async () => {
  expect(await ingest(at(0), [])).toEqual({ packets: [], repeated: new Set(), refused: [] });
});

test('refuses requests beyond the queue with 503, and stores those in it', async () => {
  const many = Array.from({ length: LIMITS.packetsPerRequest }, (_, n) => message(n));
  const tasks = Array.from({ length: 4 }, () => ingest(at(0), many));
  const results = await Promise.allSettled(tasks);
  const refused = results.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
  expect(refused.length).toBeGreaterThan(0);
  for (const { reason } of refused) expect(reason).toMatchObject({ status: 503, headers: { 'Retry-After': '1' } });
  const kept = (results.length - refused.length) * LIMITS.packetsPerRequest;
  expect(await database.db.collection('packets').countDocuments({ _oid: new ObjectId(at(0).objectId) })).toBe(kept);
});

test('stores concurrent packets over HTTP beside an invalid one', async () => {
  await service.admin('POST', 'objects', { id: 'many', name: 'Many' });
  const post = (body: object): Promise<Answer> => service.admin('POST', 'objects/many/packets', body);
  const good = Array.from({ length: 100 }, (_, n) => post({ n }));
  const bad = [post({ time: 'never', n: -1 }), post({ time: {}, n: -2 }), post([{ time: [], n: -3 }])];
  expect((await Promise.all(bad)).map(({ status }) => status)).toEqual([400, 400, 400]);
  const answers = await Promise.all(good);
  expect(answers.map(({ status, body }) => [status, body.n])).toEqual(answers.map((_, n) => [200, n]));
  const { body: stored } = await service.admin('GET', 'objects/many/packets');
  const byStamp = answers.map(({ body: { success, ...packet } }) => packet).sort((one, two) => one._ts - two._ts);
  expect(stored).toEqual(byStamp);
  expect((await service.admin('GET', 'objects/many')).body.state).toEqual(byStamp.at(-1));
});
