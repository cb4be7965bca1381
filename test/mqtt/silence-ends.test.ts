/** A device that connects at the moment at which its silence is over: it is online. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Long, MongoClient, ObjectId } from 'mongodb';
import { LIMITS } from '../../src/core/limits.js';
import { createDigest } from '../../src/devices/dedup-id.js';
import { createOfflineTimeouts, type OfflineTimeouts } from '../../src/devices/presence/offline-timeout.js';
import { createPresence } from '../../src/devices/presence/presence.js';
import { createIngest } from '../../src/packets/ingest.js';
import { readLastPacketTimes } from '../../src/packets/last-packet-times.js';
import { createStampClock } from '../../src/packets/packet.js';
import { type Database, databaseOf } from '../../src/platform/mongo/driver/client.js';
import { startTestService, testUri } from '../support/fixture.js';
import { commandOn, type HeldLine, startHeldLine } from '../support/held-line.js';
import { createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const HOUR_MS = 3_600_000;
const uri = testUri();
const client = new MongoClient(uri);
const database = databaseOf(client);
const digest = createDigest(Buffer.alloc(32));
const log = { info: () => undefined, warn: () => undefined };
let held: HeldLine;
let timeouts: OfflineTimeouts | undefined;
let objectId: string;

const deps = (on: Database) => ({
  database: on,
  ingest: createIngest(on, createStampClock(Date.now)),
  digest,
  log,
  now: Date.now,
});

beforeAll(async () => {
  // Its own search for silent devices would find it as well.
  const { admin, service, client: own } = await startTestService({}, uri);
  objectId = await createObject(admin, 'silent', { config: { offlineAfter: '1 min' } });
  expect((await admin('POST', `objects/${objectId}/packets`, { time: Date.now() - HOUR_MS, n: 1 })).status).toBe(200);
  await service.stop();
  await own.close();
  const _ts = Long.fromNumber((Date.now() - HOUR_MS) * 1_000);
  await client.db().collection('packets').updateMany({}, { $set: { _ts } });
  held = await startHeldLine(uri);
});
afterAll(async () => {
  held?.releaseAll();
  await timeouts?.stop();
  await held?.stop();
  await client.db().dropDatabase();
  await client.close();
});

test('is reported online by whoever has just reported it offline', async () => {
  Object.assign(LIMITS, { presenceRenewMs: 50 });
  const object = await client
    .db()
    .collection('objects')
    .findOne({ _id: new ObjectId(objectId) });
  timeouts = createOfflineTimeouts({ ...deps(databaseOf(held.client)), reportedOffline: () => undefined });
  const presence = createPresence(deps(database));
  const store = held.hold(commandOn('insert', 'packets'));
  timeouts.start();
  await until(() => store.isReached, 'the device to be reported offline');
  await presence.arrive({ objectId, ownId: 'silent', groupId: String(object?.group) }, 'connection');
  store.release();
  const onlines = async () =>
    (await client.db().collection('packets').find({}).sort({ time: 1 }).toArray()).map(({ online }) => online);
  await until(async () => (await onlines()).length > 2, 'the device to be reported online');
  expect(await onlines()).toEqual([true, false, true]);
  expect((await readLastPacketTimes(database, objectId))?.isOnline).toBe(true);
});
