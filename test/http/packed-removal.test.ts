/** Packets that are packed go as those that are not, and no others. */
import { expect, test } from '@jest/globals';
import { type Document, ObjectId } from 'mongodb';
import { removeBucketsOf } from '../../src/packets/store/bucket-removal.js';
import { commitStep, storePending } from '../../src/packets/store/packing.js';
import { removePacketsOf } from '../../src/packets/store/removal.js';
import { findRemovedPlace } from '../../src/packets/store/removed-places.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { ADMIN, useService } from '../support/fixture.js';
import { packHistory, readHistory, readStoredRows } from '../support/packed.js';
import { until } from '../support/until.js';

const service = useService();
const START = Date.UTC(2026, 0, 1);
const PACKETS = 60;
const database = () => databaseOf(service.client);
const removals = () => service.client.db().collection('removals');
const bucketsOf = (id: string) =>
  service.client
    .db()
    .collection('packedPackets')
    .countDocuments({ _oid: new ObjectId(id) });

const packetOf = (nth: number) => ({ time: START + nth * 1_000, nth });

/** An object with packets of which all but the last ten are in buckets of ten, each a second after the other. */
async function createPacked(bucketPackets = 10, toNth = PACKETS - 11): Promise<string> {
  const id = await createPlain();
  await packHistory(database(), id, { bucketPackets, toMs: START + toNth * 1_000 });
  return id;
}

async function createPlain(): Promise<string> {
  const { _id } = (await service.admin('POST', 'objects', { id: `truck-${new ObjectId()}`, name: 'Truck' })).body;
  await service.admin(
    'POST',
    `objects/${_id}/packets`,
    Array.from({ length: PACKETS }, (_, nth) => packetOf(nth)),
  );
  return _id;
}

async function remove(id: string, query: string): Promise<void> {
  expect((await service.admin('DELETE', `objects/${id}/packets?${query}`)).status).toBe(200);
  await until(async () => (await removals().countDocuments()) === 0, 'the removal');
}

const numbersOf = async (id: string): Promise<number[]> => (await readHistory(database(), id)).map(({ nth }) => nth);
const at = (nth: number): number => START + nth * 1_000;

test.each<[name: string, query: string, bucketsLeft: number]>([
  ['whole buckets', `from=${at(10)}&to=${at(29)}`, 3],
  ['a part of a bucket', `from=${at(12)}&to=${at(14)}`, 4],
  ['parts of two buckets', `from=${at(15)}&to=${at(24)}`, 3],
  ['whole buckets and parts of two', `from=${at(5)}&to=${at(34)}`, 1],
  ['buckets and rows', `from=${at(25)}&to=${at(52)}`, 2],
  ['everything up to a time', `to=${at(23)}`, 2],
  ['rows alone', `from=${at(52)}&to=${at(54)}`, 5],
  ['everything', 'from=0', 0],
  ['nothing', `from=${at(1_000)}`, 5],
  ['between two packets of a bucket', `from=${at(11) + 1}&to=${at(11) + 2}`, 4],
])('removes the same packets as without buckets: %s', async (_, query, bucketsLeft) => {
  const plain = await createPlain();
  const packed = await createPacked();
  for (const id of [plain, packed]) await remove(id, query);
  expect(await numbersOf(packed)).toEqual(await numbersOf(plain));
  expect(await bucketsOf(packed)).toBe(bucketsLeft);
});

test('keeps packets by name in buckets, and turns no others into rows for them', async () => {
  const id = await createPacked();
  const { _id: key } = (await readHistory(database(), id))[25] as Document;
  const which = { time: { below: at(50) }, exceptKeys: [key] };
  const removed = await removeBucketsOf(database(), { objectId: id, which, keepsPlaces: false });
  expect(removed).toEqual({ removed: 40, unpacked: 1 });
  await removePacketsOf(database(), { objectId: id, which });
  expect(await numbersOf(id)).toEqual([25, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59]);
});

test('records how many packets were removed', async () => {
  const id = await createPacked();
  await remove(id, `from=${at(5)}&to=${at(54)}`);
  const { body } = await service.admin('GET', `audit?where.action=packets removed&where.entity=${id}`);
  expect(body[0].fields).toContain('packets=50');
});

test('keeps the latest packets rows when those behind the last bucket go, before they go', async () => {
  const id = await createPacked();
  await remove(id, `from=${at(PACKETS - 10)}`);
  expect((await readStoredRows(database(), id)).length).toBe(10);
  expect(await numbersOf(id)).toEqual(Array.from({ length: PACKETS - 10 }, (_, nth) => nth));
  const { body } = await service.admin('GET', `objects/${id}`);
  expect(body.state).toMatchObject({ nth: PACKETS - 11 });
  // So do those of the bucket before them.
  await remove(id, `from=${at(PACKETS - 20)}`);
  expect((await service.admin('GET', `objects/${id}`)).body.state).toMatchObject({ nth: PACKETS - 21 });
});

test('keeps the last packet with data a row where only presence is behind it', async () => {
  const id = await createPacked();
  await service.admin('POST', `objects/${id}/packets`, { time: at(PACKETS), online: false });
  await remove(id, `from=${at(PACKETS - 10)}&to=${at(PACKETS - 1)}`);
  const { body } = await service.admin('GET', `objects/${id}`);
  expect(body.state).toMatchObject({ nth: PACKETS - 11, online: false });
});

test('keeps the places of packets that were in buckets', async () => {
  const id = await createPacked();
  const all = await readHistory(database(), id);
  await remove(id, `from=${at(5)}&to=${at(34)}`);
  for (const nth of [5, 12, 19, 29, 34]) {
    const { _id, time, _ts } = all[nth] as (typeof all)[number];
    const packetId = Buffer.from(_id.buffer).toString('hex', 0, 12);
    expect(await findRemovedPlace(database(), { objectId: id, packetId })).toEqual({ timeMs: time, stampUs: _ts });
  }
});

test('makes no event of packets but that they were removed', async () => {
  const id = await createPacked();
  await service.settled();
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const before = service.changes.length;
  await remove(id, `from=${at(15)}&to=${at(24)}`);
  await until(() => listener.received().length > 0, 'the event');
  await service.settled();
  expect(listener.take().map(({ name, payload }) => [name, Object.keys(payload.after)])).toEqual([
    ['object-update', ['packetsRemoved']],
  ]);
  expect(service.changes.slice(before).filter(({ store }) => store === 'packets')).toEqual([]);
  listener.close();
});

test('removes rows of a step of packing that is stored, which ends it, and stores what is sent again', async () => {
  const id = await createPlain();
  const rows = (await readStoredRows(database(), id)).slice(0, 30);
  const pending = await storePending(database(), { objectId: id, rows, replaces: null, mayGrow: true });
  await remove(id, `from=${at(5)}&to=${at(9)}`);
  expect(await bucketsOf(id)).toBe(0);
  expect(await commitStep(database(), pending as NonNullable<typeof pending>)).toBeNull();
  await service.admin('POST', `objects/${id}/packets`, { ...packetOf(7), again: true });
  expect(await numbersOf(id)).toEqual([
    0,
    1,
    2,
    3,
    4,
    7,
    ...Array.from({ length: PACKETS - 10 }, (_, nth) => nth + 10),
  ]);
});

test('packs nothing of an object while a removal of its packets waits', async () => {
  const id = await createPlain();
  const rows = (await readStoredRows(database(), id)).slice(0, 30);
  const pending = await storePending(database(), { objectId: id, rows, replaces: null, mayGrow: true });
  // As of an instance that does not go on: it has no lease that ends.
  const leases = service.client.db().collection<{ _id: string }>('installation');
  const lease = { _id: 'lease: removals', holder: 'another', until: new Date(Date.now() + 3_600_000) };
  await leases.replaceOne({ _id: lease._id }, lease, { upsert: true });
  await service.admin('DELETE', `objects/${id}/packets?from=${at(50)}`);
  expect(await commitStep(database(), pending as NonNullable<typeof pending>)).toBeNull();
  await leases.deleteOne({ _id: lease._id });
  await until(async () => (await removals().countDocuments()) === 0, 'the removal');
  expect(await numbersOf(id)).toEqual(Array.from({ length: 50 }, (_, nth) => nth));
});

test('removes a damaged bucket as a whole, and leaves one of which a part stays', async () => {
  const id = await createPacked();
  await service.client
    .db()
    .collection('packedPackets')
    .updateMany({ _oid: new ObjectId(id) }, { $set: { 'columns.time': null } });
  await remove(id, `from=${at(15)}&to=${at(44)}`);
  expect(await bucketsOf(id)).toBe(3);
});

test('removes all packets with their object', async () => {
  const id = await createPacked();
  const rows = (await readStoredRows(database(), id)).slice(0, 5);
  await storePending(database(), { objectId: id, rows, replaces: null, mayGrow: true });
  expect(await bucketsOf(id)).toBe(6);
  await service.admin('DELETE', `objects/${id}`);
  await until(async () => (await bucketsOf(id)) === 0 && (await numbersOf(id)).length === 0, 'no packets');
});
