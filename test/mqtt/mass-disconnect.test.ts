/** Many devices lose their connections at the same moment and reconnect. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import type { Packet } from 'mqtt-packet';
import { LIMITS } from '../../src/core/limits.js';
import { type Line, openLine } from '../support/cuttable-connection.js';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { storeFleet } from '../support/fleet.js';
import { AUTH, CONNECT, connectRaw, PUBLISH, type RawDevice } from '../support/mqtt-device.js';
import { runsOf } from '../support/runs.js';
import { until } from '../support/until.js';

const DEVICES = runsOf(1_000);
// A device whose connection was closed is set offline after the first time; the second one is the usual one of an outage.
Object.assign(LIMITS, { presenceGraceMs: 500, databaseSelectionMs: 2_500 });
const { databaseAnswerMs } = LIMITS;

const uri = testUri();
let line: Line;
let service: TestService;
let client: MongoClient;

beforeAll(async () => {
  line = await openLine(uri);
  client = await new MongoClient(uri).connect();
  service = await startTestService({ env: { LOG_LEVEL: 'warn' } }, line.uri);
  await storeFleet(client.db(), DEVICES, () => ({ config: { auth: AUTH } }));
});
afterAll(async () => {
  await line.mend();
  await service?.stop();
  await client?.close();
  await line.cut();
});

/** Connects every device. */
async function connectAll(): Promise<RawDevice[]> {
  const devices = await Promise.all(
    Array.from({ length: DEVICES }, async (_, nth) => {
      const device = await connectRaw(service.service.mqttUrl as string);
      device.send(CONNECT(`device-${nth}`));
      return device;
    }),
  );
  await until(() => devices.every(({ received }) => received.length > 0), 'all devices to be connected');
  return devices;
}

const subscriptions = [{ topic: 'base/commands/#', qos: 1 as const }];
const SUBSCRIBE: Packet = { cmd: 'subscribe', messageId: 1, subscriptions };

const linesWith = (message: string): string[] => service.logLines.filter((text) => text.includes(message));

const countOf = (online: boolean): Promise<number> => client.db().collection('packets').countDocuments({ online });

test('marks many devices offline once each after an outage of the database in which they disconnected, with few log lines', async () => {
  const devices = await connectAll();
  expect(await countOf(true)).toBe(DEVICES);
  const failures = (): string[] => linesWith('failed to mark disconnected devices offline');
  await line.cut();
  // The usual one: before, when all of them connect, a busy machine may take longer.
  Object.assign(LIMITS, { databaseAnswerMs: 5_000 });
  // Nobody can look up what waits for them, or whether they were offline.
  for (const device of devices) device.send(SUBSCRIBE, PUBLISH('base/state', '{"n":1}'));
  const lookups = ['failed to send commands', 'failed to find out whether a device that sends was offline'] as const;
  for (const message of lookups) await until(() => linesWith(message).length > 0, message);
  for (const { socket } of devices) socket.destroy();
  await until(() => failures().length >= 2, 'a second attempt');
  await line.mend();
  Object.assign(LIMITS, { databaseAnswerMs });
  await until(async () => (await countOf(false)) >= DEVICES, 'all devices to be offline');
  expect(await client.db().collection('packets').distinct('_oid', { online: false })).toHaveLength(DEVICES);
  expect(await countOf(false)).toBe(DEVICES);
  expect(failures().length).toBeLessThan(20);
  // At most once a minute.
  for (const message of lookups) expect(linesWith(message).length).toBeLessThan(10);

  const back = await connectAll();
  expect(await countOf(true)).toBe(2 * DEVICES);
  for (const { socket } of back) socket.destroy();
});
