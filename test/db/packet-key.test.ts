/** The keys of packets: what is seen of them, and their order in the index beside those of former versions. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Binary, BSON, type Document, MongoClient, ObjectId } from 'mongodb';
import { toJson } from '../../src/db/bson/json-writer.js';
import { keysAfter, packetIdIn, packetKeysOf, toPacketKey } from '../../src/db/bson/packet-key.js';
import { readShownId } from '../../src/db/bson/reader.js';
import { toPlain } from '../../src/db/schema/mapping.js';
import { testUri } from '../support/fixture.js';

let client: MongoClient;
beforeAll(async () => {
  client = await new MongoClient(testUri()).connect();
});
afterAll(async () => {
  await client.db().dropDatabase();
  await client.close();
});

/** As text a key is not told from another: it is no UTF-8. */
const hexOf = (key: unknown): string => (key as Binary | ObjectId).toString('hex');

test('shows the `_id` of the packet for a key of either form', () => {
  const id = new ObjectId().toHexString();
  for (const _id of packetKeysOf(id, new ObjectId())) {
    const stored = { n: 1, _id };
    const bson = BSON.serialize(stored);
    expect(packetIdIn(_id)).toBe(id);
    expect(readShownId(bson)).toBe(id);
    expect([toPlain(BSON.deserialize(bson)), JSON.parse(toJson(bson).toString())]).toEqual(
      Array(2).fill({ n: 1, _id: id }),
    );
  }
});

test('creates the same key only for the same packet of the same object', () => {
  const [id, one, other] = [new ObjectId().toHexString(), new ObjectId(), new ObjectId()];
  const texts = [toPacketKey(id, one), toPacketKey(id.toUpperCase(), one), toPacketKey(id, other)].map(hexOf);
  expect(texts[0]).toBe(texts[1]);
  expect(texts[0]).not.toBe(texts[2]);
});

test('finds all keys after any key in the order of the index', async () => {
  const packets = client.db().collection<Document>('packets');
  const objects = [new ObjectId(), new ObjectId()];
  const ids = Array.from({ length: 6 }, () => new ObjectId().toHexString());
  const keys = ids.flatMap((id, at): unknown[] =>
    at < 3 ? objects.map((object) => toPacketKey(id, object)) : [new ObjectId(id)],
  );
  await packets.insertMany(keys.map((_id) => ({ _id })) as Document[]);
  const inOrder = async (filter: Document): Promise<string[]> =>
    (await packets.find(filter).sort({ _id: 1 }).toArray()).map(({ _id }) => hexOf(_id));
  const all = await inOrder({});
  expect(all).toHaveLength(keys.length);
  for (const { _id } of await packets.find().toArray()) {
    const key = _id as unknown as Binary;
    expect(await inOrder(keysAfter(key))).toEqual(all.slice(all.indexOf(hexOf(key)) + 1));
  }
});
