/** Which packets were stored before another one: the database's order says it, whatever the clocks of those say that stored them. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type ChangeStream, type Document, MongoClient, ObjectId } from 'mongodb';
import { collectBefore } from '../../src/packets/store/reader.js';
import { readNumber } from '../../src/platform/mongo/bson/numbers.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { toPosition } from '../../src/platform/mongo/changes/decoder.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { testUri } from '../support/fixture.js';

const object = new ObjectId();
/** Stored one write after the other, each with the number of the packet, its time and its stamp. */
const WRITES: readonly (readonly [nth: number, time: number, stamp: number][])[] = [
  [[0, 10, 2_000]],
  [[1, 9, 1_000]],
  [
    [2, 3, 600],
    [3, 5, 601],
    [4, 4, 602],
  ],
  [[5, 20, 500]],
];
const positions: string[] = [];
let database: Database;
let changes: ChangeStream;

beforeAll(async () => {
  const client = await new MongoClient(testUri()).connect();
  database = databaseOf(client);
  const packets = client.db().collection<Document>('packets');
  changes = packets.watch();
  // A cursor exists once it was asked.
  await changes.tryNext();
  for (const write of WRITES) {
    const documents = write.map(([nth, time, _ts]) => ({
      _id: toPacketKey(new ObjectId().toHexString(), object),
      _oid: object,
      time,
      _ts,
      nth,
    }));
    await packets.insertMany(documents as Document[], { ordered: false, writeConcern: { w: 'majority' } });
  }
  while (positions.length < WRITES.flat().length) positions.push(toPosition((await changes.next())._id as Document));
});
afterAll(async () => {
  await changes.close();
  await database.db.dropDatabase();
  await database.client.close();
});

async function numbersBefore(nth: number, position: string | null, limit = 10): Promise<number[]> {
  const [, , stampUs] = WRITES.flat()[nth] as [number, number, number];
  const place = { stampUs, position };
  const found = await collectBefore(database, { objectId: object.toHexString(), place, limit });
  return found.map((packet) => readNumber(packet, 0, 'nth'));
}

test.each([
  ['the first one', 0, []],
  ['one of a clock that is behind', 1, [0]],
  ['the first of a write', 2, [0, 1]],
  ['the last of a write', 4, [0, 1, 3, 2]],
  ['the newest one, of a clock that is behind', 5, [0, 1, 3, 4, 2]],
])('finds those before %s, the latest first', async (_name, nth, wanted) => {
  expect(await numbersBefore(nth, positions[nth] as string)).toEqual(wanted);
});

test('finds no more of them than asked', async () => {
  expect(await numbersBefore(5, positions[5] as string, 2)).toEqual([0, 1]);
  expect(await numbersBefore(4, positions[4] as string, 2)).toEqual([0, 1]);
});

test('goes by stamps where the position is not known, or of a past that the database does not keep', async () => {
  expect(await numbersBefore(1, null)).toEqual([5, 3, 4, 2]);
  const long = Buffer.from(positions[1] as string, 'base64url');
  long.writeUInt32BE(1_000, 1);
  expect(await numbersBefore(1, long.toString('base64url'))).toEqual([5, 3, 4, 2]);
});
