/** Readers of packets ask the database for no more than they need, and for nothing where they name no object. */
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { type Document, MongoClient, ObjectId } from 'mongodb';
import { readLatest, readLatestData, readObjectsWithLatest } from '../../src/packets/store/latest-packets.js';
import { collectPackets, countPackets, findNamedPacket, findNamedPackets } from '../../src/packets/store/reader.js';
import { removePacketsOf } from '../../src/packets/store/removal.js';
import { toPacketKey } from '../../src/platform/mongo/bson/packet-key.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { testUri } from '../support/fixture.js';

const object = new ObjectId();
const objectId = object.toHexString();
const packetIds = Array.from({ length: 3 }, () => new ObjectId().toHexString());
const names = packetIds.map((packetId) => ({ objectId, packetId }));
const commands: Document[] = [];
let database: Database;

beforeAll(async () => {
  const client = await new MongoClient(testUri(), { monitorCommands: true }).connect();
  client.on('commandStarted', ({ command }) => commands.push(command));
  database = databaseOf(client);
  const packets = packetIds.map((id, nth) => ({
    _id: toPacketKey(id, object),
    _oid: object,
    time: nth,
    _ts: nth,
    nth,
  }));
  // A foreign writer stored one of no object, and it has data.
  const data = Object.fromEntries(Array.from({ length: 20 }, (_, nth) => [`field${nth}`, nth]));
  await client
    .db()
    .collection('packets')
    .insertMany([...packets, { time: 1, _ts: 9, ...data }] as Document[]);
});
afterAll(async () => {
  await database.db.dropDatabase();
  await database.client.close();
});
beforeEach(() => void commands.splice(0));

const asked = (): Document[] => commands.filter(({ find, getMore }) => find !== undefined || getMore !== undefined);

test('finds packets by their names with one command, which names the index', async () => {
  expect(await findNamedPackets(database, names, { fields: ['nth'] })).toHaveLength(3);
  expect(asked()).toEqual([expect.objectContaining({ find: 'packets', hint: { _id: 1 }, batchSize: 4 })]);
});

test('finds one packet by its name with one command, which names the index', async () => {
  expect(await findNamedPacket(database, { objectId, packetId: packetIds[1] as string }, null)).not.toBeNull();
  expect(asked()).toEqual([expect.objectContaining({ find: 'packets', hint: { _id: 1 }, limit: 1 })]);
});

async function countIn(batches: AsyncIterable<{ readonly length: number }>): Promise<number> {
  let count = 0;
  for await (const { length } of batches) count += length;
  return count;
}

test.each([null, 5])('finds nothing where no object is named, with a bound of %p', async (boundMs) => {
  const none = { objectIds: [], boundMs, fields: null };
  expect(await countIn(readLatest(database, none, {}))).toBe(0);
  expect(await countIn(readLatestData(database, { ...none, among: 10 }, {}))).toBe(0);
});

test('finds, counts and looks up nothing where no object is named', async () => {
  expect(await collectPackets(database, { objectIds: [], fields: null, limit: 10 })).toEqual([]);
  expect(await countPackets(database, { objectIds: [] })).toBe(0);
  expect(await findNamedPackets(database, [], { fields: null })).toEqual([]);
  for await (const { documents } of readObjectsWithLatest(database, [], { projection: undefined })) {
    expect(documents).toEqual([]);
  }
});

test('removes nothing without an object', async () => {
  await expect(removePacketsOf(database, { objectId: '', which: 'all' })).rejects.toThrow();
  expect(await database.db.collection('packets').countDocuments()).toBe(4);
});

test('removes nothing where it names no interval of stamps', async () => {
  expect(await removePacketsOf(database, { objectId, which: { stamps: [] } })).toBe(0);
  expect(await countPackets(database, { objectIds: [objectId], stamps: [] })).toBe(0);
});

test.each([{}, { time: {} }, { time: { from: null, to: null } }, { stamps: [{ from: null }] }])(
  'refuses to remove all packets where bounds are missing: %p',
  async (which) => {
    await expect(removePacketsOf(database, { objectId, which })).rejects.toThrow('no bounds');
    expect(await database.db.collection('packets').countDocuments()).toBe(4);
  },
);

test('removes all packets of the object where that is said', async () => {
  expect(await removePacketsOf(database, { objectId, which: 'all' })).toBe(3);
  expect(await database.db.collection('packets').countDocuments()).toBe(1);
});
