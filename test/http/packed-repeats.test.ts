/** What is sent again after it was packed is stored once, and answered as before. */
import { afterEach, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { useService } from '../support/fixture.js';
import { CONNECT, connectRaw, createObject, PUBLISH, type RawDevice } from '../support/mqtt-device.js';
import { packHistory, readStoredRows } from '../support/packed.js';
import { useSources } from '../support/sources.js';
import { until } from '../support/until.js';

// Tests pack at once.
Object.assign(LIMITS, { bucketsKnownMs: 0 });

const service = useService();
const sources = useSources(service);
const OLD_MS = Date.now() - 10 * 86_400_000;
const raws: RawDevice[] = [];
let count = 0;

afterEach(() => {
  for (const raw of raws.splice(0)) raw.socket.destroy();
});

const database = () => databaseOf(service.client);
const newDevice = (): Promise<string> => createObject(service.admin, `repeats-${++count}`);
const idOf = (nth: number): string => nth.toString(16).padStart(24, 'a');

/** Packs all but a last packet. */
async function pack(objectId: string): Promise<void> {
  await service.admin('POST', `objects/${objectId}/packets`, { last: true });
  await packHistory(database(), objectId);
}

/** How many packets there are, in rows and in buckets. */
async function countAll(objectId: string): Promise<number> {
  const buckets = await service.client
    .db()
    .collection('packedPackets')
    .find({ _oid: new ObjectId(objectId) })
    .toArray();
  const rows = await readStoredRows(database(), objectId);
  return buckets.reduce((sum, { n }) => sum + n, rows.length);
}

/** A recent `_id` as a device with a clock makes it. */
const recentId = (): string => new ObjectId().toHexString();

test.each<[name: string, packet: () => object, again?: object]>([
  ['an `_id` of its own and a time', () => ({ _id: idOf(1), time: OLD_MS, speed: 1 })],
  ['an `_id` of its own and no time', () => ({ _id: idOf(2), speed: 1 })],
  ['an `_id` like those of the service', () => ({ _id: recentId(), time: OLD_MS, speed: 1 })],
  ['an `_id` like those of the service, of now', () => ({ _id: recentId(), speed: 1 })],
  [
    'an `_id` of its own, and another time when it is sent again',
    () => ({ _id: idOf(3), time: OLD_MS }),
    { time: OLD_MS + 1 },
  ],
  [
    'an `_id` of its own, and a recent time when it is sent again',
    () => ({ _id: idOf(4), time: OLD_MS }),
    { time: Date.now() },
  ],
  ['another identifier', () => ({ _id: 'frame 17', time: OLD_MS, speed: 1 })],
  ['another identifier and no time', () => ({ _id: 18, speed: 1 })],
  ['a wrong time', () => ({ _id: 19, time: 5, speed: 1 })],
])('stores a packet with %s once', async (_, create, changed = {}) => {
  const objectId = await newDevice();
  const packet = create();
  const again = { ...packet, ...changed };
  await service.admin('POST', `objects/${objectId}/packets`, packet);
  const before = await service.admin('POST', `objects/${objectId}/packets`, again);
  expect(before.status).toBe(200);
  await pack(objectId);
  expect(await countAll(objectId)).toBe(2);
  const after = await service.admin('POST', `objects/${objectId}/packets`, again);
  expect({ status: after.status, body: after.body }).toEqual({ status: before.status, body: before.body });
  expect(await countAll(objectId)).toBe(2);
});

test('stores of an array what is new, and answers as before', async () => {
  const objectId = await newDevice();
  const packets = Array.from({ length: 300 }, (_, nth) => ({ _id: idOf(1_000 + nth * 7), time: OLD_MS + nth, nth }));
  const path = `objects/${objectId}/packets`;
  await service.admin('POST', path, packets);
  const before = await service.admin('POST', path, packets);
  await service.admin('POST', path, { last: true });
  await packHistory(database(), objectId, { bucketPackets: 100 });
  const after = await service.admin('POST', path, packets);
  expect(after.body).toEqual(before.body);
  expect(await countAll(objectId)).toBe(301);
  const mixed = packets.flatMap((packet) => [packet, { ...packet, _id: idOf(100_000 + packet.nth) }]);
  expect((await service.admin('POST', path, mixed)).body).toEqual({ success: true, count: 600 });
  expect(await countAll(objectId)).toBe(601);
});

test('stores packets with the same `_id` for other objects', async () => {
  const objectId = await newDevice();
  const other = await newDevice();
  const packet = { _id: idOf(50), time: OLD_MS };
  await service.admin('POST', `objects/${objectId}/packets`, packet);
  await pack(objectId);
  await service.admin('POST', `objects/${other}/packets`, packet);
  expect(await countAll(other)).toBe(1);
});

test('makes no event of a packet that is packed', async () => {
  const objectId = await newDevice();
  const packet = { _id: idOf(60), time: OLD_MS, speed: 2 };
  await service.admin('POST', `objects/${objectId}/packets`, packet);
  await pack(objectId);
  await service.settled();
  const before = service.changes.length;
  await service.admin('POST', `objects/${objectId}/packets`, packet);
  await service.settled();
  expect(service.changes.slice(before).filter(({ store }) => store === 'packets')).toEqual([]);
});

test('stores a message of MQTT that is sent again once', async () => {
  const id = `repeats-mqtt-${++count}`;
  const objectId = await createObject(service.admin, id);
  const raw = await connectRaw(service.service.mqttUrl as string, 4);
  raws.push(raw);
  raw.send(CONNECT(id));
  await until(() => raw.received.length > 0, 'CONNACK');
  const old = (messageId: number, dup = false) =>
    PUBLISH('base/state', JSON.stringify({ time: OLD_MS, n: 1 }), { messageId, dup });
  raw.send(old(1));
  await until(() => raw.received.length === 2, 'an acknowledgement');
  await pack(objectId);
  const stored = await countAll(objectId);
  raw.send(old(1, true), old(2));
  await until(() => raw.received.length === 4, 'both acknowledgements');
  expect(await countAll(objectId)).toBe(stored);
});

test('stores what a source sends again once', async () => {
  const object = await sources.createObject();
  const source = await sources.createSource();
  const body = { device: object.id, time: OLD_MS, speed: 5 };
  const before = await sources.send(source, body);
  expect(before.status).toBe(200);
  await pack(object._id);
  const stored = await countAll(object._id);
  expect((await sources.send(source, body)).body).toEqual(before.body);
  expect(await countAll(object._id)).toBe(stored);
});

test('stores a packet that a damaged bucket may have, so that its device can go on', async () => {
  const objectId = await newDevice();
  const packet = { _id: idOf(70), time: OLD_MS };
  await service.admin('POST', `objects/${objectId}/packets`, packet);
  await pack(objectId);
  await service.client
    .db()
    .collection('packedPackets')
    .updateOne({ _oid: new ObjectId(objectId) }, { $unset: { 'columns._id': 1 } });
  expect((await service.admin('POST', `objects/${objectId}/packets`, packet)).status).toBe(200);
});

test('reads a packet whose `_id` its device chose from its bucket alone', async () => {
  const objectId = await newDevice();
  // The first bytes say nothing of the time: each bucket has those of nearly all.
  const names = Array.from({ length: 60 }, (_, nth) => ((nth * 7_919) % 60).toString(16).padEnd(24, '0'));
  const packets = names.map((_id, nth) => ({ _id, time: OLD_MS + nth, nth }));
  await service.admin('POST', `objects/${objectId}/packets`, packets);
  await service.admin('POST', `objects/${objectId}/packets`, { last: true });
  expect(await packHistory(database(), objectId, { bucketPackets: 20 })).toBe(3);
  // Whoever reads one of these fails.
  const others = { _oid: new ObjectId(objectId), 'from.time': { $ne: OLD_MS + 20 } };
  const damaged = await service.client
    .db()
    .collection('packedPackets')
    .updateMany(others, { $set: { head: 'x' } });
  expect(damaged.modifiedCount).toBe(2);

  const path = `objects/${objectId}/packets`;
  expect((await service.admin('GET', `${path}/${names[33]}`)).body).toMatchObject({ nth: 33 });
  const { body } = await service.admin('GET', `${path}/${names[33]}?only=nth`);
  expect(body).toEqual({ success: true, _id: names[33], nth: 33 });
  expect((await service.admin('GET', `${path}?after=${names[33]}&limit=3`)).body[0]).toMatchObject({ nth: 34 });
  expect((await service.admin('GET', `${path}/${'e'.repeat(24)}`)).status).toBe(404);
  expect((await service.admin('GET', `${path}/${names[3]}`)).status).toBe(500);
});
