/** Packets of the past, for webhooks, whatever a foreign writer stored among them. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Decimal128, MongoClient, ObjectId, Timestamp } from 'mongodb';
import { readPacked } from '../../src/packets/store/packed-reader.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { listPastPackets, type PastPacket, readStoredPackets } from '../../src/webhooks/past-packets.js';
import { testUri } from '../support/fixture.js';

const client = new MongoClient(testUri());
const object = new ObjectId();
const NOW_MS = 1_600_000_000_000;
const INTERVAL = { fromMs: NOW_MS, toMs: NOW_MS + 10 };

beforeAll(async () => {
  await client.connect();
  const foreign = [/a/, Decimal128.fromString('1.5'), new Timestamp(1n)];
  const keyOf = (at: number) => ({ _oid: object, time: NOW_MS + at, _ts: (NOW_MS + at) * 1_000 });
  const stored = [
    { ...keyOf(0), n: 1 },
    { ...keyOf(1), n: 2, foreign },
    { foreign, ...keyOf(2), n: 3 },
  ];
  await client.db().collection('packets').insertMany(stored);
});
afterAll(async () => {
  await client.db().dropDatabase();
  await client.close();
});

/** As the key of a change begins: 4 bytes of seconds, and 4 of the number within the second. */
function timeBytes({ high, low }: Timestamp): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32BE(high >>> 0);
  bytes.writeUInt32BE(low >>> 0, 4);
  return bytes;
}

async function readAll(position: string | null): Promise<number[]> {
  const read: number[] = [];
  for await (const batch of readStoredPackets(databaseOf(client), [object.toHexString()], { ...INTERVAL, position })) {
    read.push(...numbersIn(batch));
  }
  return read;
}

const numbersIn = (packets: readonly PastPacket[]): number[] =>
  packets.map(({ json, objectId, timeMs, stampUs }) => {
    const { n } = JSON.parse(json.toString());
    expect([objectId, timeMs, stampUs]).toEqual([object.toHexString(), NOW_MS + n - 1, (NOW_MS + n - 1) * 1_000]);
    return n;
  });

test('reads them by when they were stored, also those with types that JSON does not have', async () => {
  expect(await readAll(null)).toEqual([1, 2, 3]);
});

test('reads them by their own time, also those with types that JSON does not have', async () => {
  const read = await listPastPackets(databaseOf(client), object.toHexString(), { ...INTERVAL, place: null });
  expect(numbersIn(read)).toEqual([1, 2, 3]);
});

// The write is acknowledged before a majority has it: a read that did not wait for the position would miss it.
test('reads all that were stored up to a position, of rows and of buckets alike', async () => {
  const n = 4;
  const packet = { _oid: object, time: NOW_MS + n - 1, _ts: (NOW_MS + n - 1) * 1_000, n };
  const writeConcern = { w: 1, journal: false };
  await client.db().collection('packets').insertOne(packet, { writeConcern });
  const { operationTime } = await client.db().command({ ping: 1 });
  const position = Buffer.concat([Buffer.of(0x82), timeBytes(operationTime)]).toString('base64url');
  expect(await readAll(position)).toEqual([1, 2, 3, 4]);
  const reading = { objectIds: [object.toHexString()], fields: null, committed: { since: position } };
  const packed: unknown[] = [];
  for await (const { documents } of readPacked(databaseOf(client), reading)) packed.push(...documents);
  expect(packed).toHaveLength(4);
});
