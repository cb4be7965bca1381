/** Very many devices lose their connections in one moment, and come back. CUT_DEVICES=5000 for more than a few. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { type Line, openLine } from '../support/cuttable-connection.js';
import { startTestService, type TestService, testUri } from '../support/fixture.js';
import { storeFleet } from '../support/fleet.js';
import { AUTH, CONNECT, connectRaw, type RawDevice } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const DEVICES = Number(process.env.CUT_DEVICES ?? 300);
const WAIT_MS = 120_000;

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

/** Connects every device; gives how long that took. */
async function connectAll(): Promise<RawDevice[]> {
  const startMs = performance.now();
  const devices = await Promise.all(
    Array.from({ length: DEVICES }, async (_, nth) => {
      const device = await connectRaw(service.service.mqttUrl as string);
      device.send(CONNECT(`device-${nth}`));
      return device;
    }),
  );
  await until(() => devices.every(({ received }) => received.length > 0), 'all are connected', WAIT_MS, 20);
  if (DEVICES > 300) console.log({ devices: DEVICES, allOnMs: Math.round(performance.now() - startMs) });
  return devices;
}

const countOf = (online: boolean): Promise<number> => client.db().collection('packets').countDocuments({ online });

test('tells of many devices that were cut while the database is away, each once, and writes few lines', async () => {
  const devices = await connectAll();
  expect(await countOf(true)).toBe(DEVICES);
  const failures = (): string[] =>
    service.logLines.filter((text) => text.includes('failed to mark disconnected devices offline'));
  await line.cut();
  for (const { socket } of devices) socket.destroy();
  // The second comes later than the first did: it is tried again ever later.
  await until(() => failures().length >= 2, 'it is tried again', WAIT_MS, 50);
  await line.mend();
  const mendedMs = performance.now();
  await until(async () => (await countOf(false)) >= DEVICES, 'all are told to be offline', WAIT_MS, 50);
  if (DEVICES > 300) console.log({ devices: DEVICES, allOffMs: Math.round(performance.now() - mendedMs) });
  expect(await client.db().collection('packets').distinct('_oid', { online: false })).toHaveLength(DEVICES);
  expect(await countOf(false)).toBe(DEVICES);
  expect(failures().length).toBeLessThan(20);

  const back = await connectAll();
  expect(await countOf(true)).toBe(2 * DEVICES);
  for (const { socket } of back) socket.destroy();
}, 300_000);
