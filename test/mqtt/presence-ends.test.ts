/** Devices that connect again while an instance stores the end of their connection: they are online then, and offline once they left. */
import { afterEach, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { createDigest } from '../../src/devices/dedup-id.js';
import { createPresence, type Presence } from '../../src/devices/presence/presence.js';
import { createIngest } from '../../src/packets/ingest.js';
import { createStampClock, type PacketSource } from '../../src/packets/packet.js';
import { databaseOf } from '../../src/platform/mongo/driver/client.js';
import { useService } from '../support/fixture.js';
import { commandOn, type HeldLine, startHeldLine } from '../support/held-line.js';
import { createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

Object.assign(LIMITS, { presenceGraceMs: 0, presenceRenewMs: 50, presenceSilentMs: 500 });

// Its own presence would sweep instances, too.
const service = useService({ env: { MQTT_PORT: '' } });
const endings: (() => unknown)[] = [];
let count = 0;

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

/** The presence of an instance, and its connection to the database. */
async function startPresence(now = Date.now): Promise<{ presence: Presence; hold: HeldLine['hold'] }> {
  const { client, hold, releaseAll, stop } = await startHeldLine(service.mongodbUri);
  const database = databaseOf(client);
  const ingest = createIngest(database, createStampClock(Date.now));
  const log = { info: () => undefined, warn: () => undefined };
  const presence = createPresence({ database, ingest, digest: createDigest(Buffer.alloc(32)), log, now });
  endings.push(stop, () => presence.stop(), releaseAll);
  return { presence, hold };
}

async function createSource(): Promise<PacketSource> {
  const ownId = `ended-${++count}`;
  const objectId = await createObject(service.admin, ownId);
  const object = await service.client
    .db()
    .collection('objects')
    .findOne({ _id: new ObjectId(objectId) });
  return { objectId, ownId, groupId: String(object?.group) };
}

const onlinesOf = async (objectId: string): Promise<boolean[]> =>
  (await service.admin('GET', `objects/${objectId}/packets`)).body.map(({ online }: { online: boolean }) => online);
const onlineOf = async (objectId: string): Promise<boolean> =>
  (await service.admin('GET', `objects/${objectId}`)).body.state.online;

test.each([
  ['with another connection', 'second'],
  ['with the same connection, which another instance took for lost', 'first'],
])('leaves a device online that is back, %s, before its end is stored', async (_how, id) => {
  const source = await createSource();
  const { presence, hold } = await startPresence();
  const other = await startPresence();
  await presence.arrive(source, 'first');
  const read = hold(commandOn('aggregate', 'packets'));
  presence.leave(source.objectId, 'first');
  await until(() => read.isReached, 'the end to be looked at');
  await other.presence.arrive(source, id);
  expect(await onlineOf(source.objectId)).toBe(true);
  read.release();
  await presence.stop();
  expect(await onlineOf(source.objectId)).toBe(true);
  expect(await onlinesOf(source.objectId)).toEqual([true, true]);
});

test('stores the end of a connection that began and ended while another instance stored the end before', async () => {
  const source = await createSource();
  const { presence, hold } = await startPresence();
  await presence.arrive(source, 'first');
  const instances = service.client.db().collection<{ _id: string; seen: Date }>('instances');
  await instances.insertOne({ _id: presence.instance, seen: new Date(0) });
  const other = await startPresence();
  const store = other.hold(commandOn('insert', 'packets'));
  await other.presence.start();
  await until(() => store.isReached, 'the other instance to store the end');
  await presence.arrive(source, 'second');
  const list = hold(commandOn('find', 'presence'));
  presence.leave(source.objectId, 'second');
  await until(() => list.isReached, 'the second connection to be ended');
  store.release();
  await until(async () => (await instances.findOne({ _id: presence.instance })) === null, 'the sweep to end');
  list.release();
  await until(async () => (await onlineOf(source.objectId)) === false, 'the device to be offline');
});

test('reports each end of a connection, and each return, within one second', async () => {
  const source = await createSource();
  const second = Math.floor(Date.now() / 1_000) * 1_000;
  let ms = 0;
  const { presence } = await startPresence(() => second + ms++);
  for (let nth = 0; nth < 3; nth++) {
    await presence.arrive(source, 'only');
    expect(await onlineOf(source.objectId)).toBe(true);
    presence.leave(source.objectId, 'only');
    await until(async () => (await onlineOf(source.objectId)) === false, 'the device to be offline');
  }
  expect(await onlinesOf(source.objectId)).toEqual([true, false, true, false, true, false]);
});
