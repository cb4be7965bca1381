/** A device whose instance misses, in a gap of the change stream, that another instance took the connection for lost. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import { startTestService, type TestService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { type ReplicaSet, startReplicaSet } from '../support/replica-set.js';
import { until } from '../support/until.js';

/** "Change stream fatal error": it cannot be resumed. */
const FATAL = 280;
const ENTERED_MS = 60_000;

let set: ReplicaSet;
let service: TestService;

beforeAll(async () => {
  set = await startReplicaSet({ members: 1 });
  service = await startTestService({}, set.uri('vigil'));
});

afterAll(async () => {
  await service?.stop();
  await set?.stop();
});

test('keeps the connection, and the device online', async () => {
  const objectId = await createObject(service.admin, 'truck');
  const device = await connectDevice(service.service.mqttUrl as string, 'truck');
  let closes = 0;
  device.on('close', () => closes++);
  const state = async () => (await service.admin('GET', 'objects/truck')).body.state;
  await until(async () => (await state()).online === true, 'the device to be online');
  const presence = service.client.db().collection('presence');
  const primary = await set.primary();
  const data = { failCommands: ['getMore'], appName: 'vigil', errorCode: FATAL };
  const fail = (mode: string) => primary.command({ configureFailPoint: 'failCommand', mode, data });
  /** Resolves when the stream that has begun by now has failed. */
  const failed = async () => {
    const { count } = await fail('alwaysOn');
    const entered = { waitForFailPoint: 'failCommand', timesEntered: count + 2, maxTimeMS: ENTERED_MS };
    await primary.command(entered);
  };
  await failed();
  // As another instance does that has not heard of this one for a while.
  await presence.updateOne({ _id: new ObjectId(objectId) }, { $set: { ended: Date.now() } });
  await failed();
  await fail('off');
  const isKnown = async () => (await presence.findOne({ _id: new ObjectId(objectId) }))?.ended === null;
  await until(isKnown, 'the connection to be known again');
  await device.publishAsync('base/state', '{"speed":5}', { qos: 1 });
  expect(await state()).toMatchObject({ online: true });
  expect([closes, device.connected]).toEqual([0, true]);
  await device.endAsync();
});
