/** The keys of packets: what is seen of them, and when two are the same. */
import { expect, test } from '@jest/globals';
import { BSON, ObjectId } from 'mongodb';
import { toJson } from '../../../src/platform/mongo/bson/json-writer.js';
import { packetIdIn, toPacketKey } from '../../../src/platform/mongo/bson/packet-key.js';
import { readShownId } from '../../../src/platform/mongo/bson/reader.js';
import { toPlain } from '../../../src/platform/mongo/schema/mapping.js';

test('shows the `_id` of the packet for its key', () => {
  const id = new ObjectId().toHexString();
  const stored = { n: 1, _id: toPacketKey(id, new ObjectId()) };
  const bson = BSON.serialize(stored);
  expect(packetIdIn(stored._id)).toBe(id);
  expect(readShownId(bson)).toBe(id);
  expect(toPlain(BSON.deserialize(bson))).toEqual({ n: 1, _id: id });
  expect(JSON.parse(toJson(bson).toString())).toEqual({ n: 1, _id: id });
});

test('creates the same key only for the same packet of the same object', () => {
  const id = new ObjectId().toHexString();
  const one = new ObjectId();
  const hexOf = (packetId: string, object: ObjectId): string => toPacketKey(packetId, object).toString('hex');
  expect(hexOf(id.toUpperCase(), one)).toBe(hexOf(id, one));
  expect(hexOf(id, new ObjectId())).not.toBe(hexOf(id, one));
});
