/**
 * A restart disconnects all devices at once: all reconnect and deliver what they published meanwhile. 2,000 devices of MQTT 3.1.1 and 5,000
 * of MQTT 5 in a soak.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import mqtt, { type MqttClient } from 'mqtt';
import { ADMIN, testUri } from '../support/fixture.js';
import { AUTH } from '../support/mqtt-device.js';
import { findFreePort } from '../support/ports.js';
import { type Process, startProcess } from '../support/process.js';
import { isSoak } from '../support/runs.js';
import { until } from '../support/until.js';

/** How many devices speak each version, at the same time. */
const FLEET = [
  { protocolVersion: 4, count: isSoak ? 2_000 : 100 },
  { protocolVersion: 5, count: isSoak ? 5_000 : 100 },
] as const;
const VERSIONS = FLEET.flatMap(({ protocolVersion, count }) => Array<4 | 5>(count).fill(protocolVersion));
const DEVICES = VERSIONS.length;
/** How long a state may take, in ms: in a soak, longer than usual. */
const WAIT_MS = isSoak ? 300_000 : undefined;

const uri = testUri();
const devices: MqttClient[] = [];
let client: MongoClient;
let env: Record<string, string>;
let mqttUrl: string;
let service: Process;

beforeAll(async () => {
  const mqttPort = await findFreePort();
  mqttUrl = `mqtt://127.0.0.1:${mqttPort}`;
  env = {
    PORT: String(await findFreePort()),
    OPS_PORT: String(await findFreePort()),
    MONGODB_URI: uri,
    SECRET: randomBytes(32).toString('hex'),
    ADMIN_PASSWORD: ADMIN.password,
    STOP_DELAY: '0',
    MQTT_PORT: String(mqttPort),
    CONNECTIONS_PER_ADDRESS: String(2 * DEVICES),
  };
  client = await new MongoClient(uri).connect();
  service = await startProcess(env);
});
afterAll(async () => {
  for (const device of devices) device.end(true);
  service?.child.kill('SIGKILL');
  await client?.db().dropDatabase();
  await client?.close();
});

async function createObjects(): Promise<void> {
  const headers = { 'Content-Type': 'application/json' };
  const post = async (path: string, body: object, more = {}) => {
    const init = { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) };
    const answer = await fetch(`${service.url}/api/v1/${path}`, init);
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return (await answer.json()) as { token: string };
  };
  const { token } = await post('auth/token', ADMIN);
  for (let from = 0; from < DEVICES; from += 50) {
    const ids = Array.from({ length: Math.min(50, DEVICES - from) }, (_, at) => `device-${from + at}`);
    const made = ids.map((id) =>
      post('objects', { id, name: id, config: { auth: AUTH } }, { Authorization: `Bearer ${token}` }),
    );
    await Promise.all(made);
  }
}

test('stores everything that devices publish before and during a restart once', async () => {
  await createObjects();
  let acknowledged = 0;
  const publish = (mark: number): void => {
    for (const device of devices) {
      // Two packets: the fields of the last one are also in packets about the presence of the device.
      device.publish('base/state', JSON.stringify([{ mark }, { last: mark }]), { qos: 1 }, (error) => {
        if (!error) acknowledged++;
      });
    }
  };
  const connected = () => devices.filter((device) => device.connected).length;
  for (const [n, protocolVersion] of VERSIONS.entries()) {
    const device = mqtt.connect(mqttUrl, { ...AUTH, clientId: `device-${n}`, protocolVersion });
    device.on('error', () => undefined);
    devices.push(device);
    // In groups: only the restart disconnects all at once.
    if (n % 50 === 49) await until(() => connected() > n - 20, 'most are connected');
  }
  await until(() => connected() === DEVICES, 'all are connected', WAIT_MS);
  publish(1);
  await until(() => acknowledged === DEVICES, 'all is acknowledged', WAIT_MS);

  expect((await service.stop()).code).toBe(0);
  await until(() => connected() === 0, 'all are disconnected', WAIT_MS);
  publish(2);
  service = await startProcess(env);
  await until(() => connected() === DEVICES, 'all are connected again', WAIT_MS);
  await until(() => acknowledged === 2 * DEVICES, 'everything is acknowledged again', WAIT_MS);
  const stored = await client
    .db()
    .collection('packets')
    .find({ mark: { $exists: true } })
    .toArray();
  const published = stored.map(({ id, mark }) => `${id} ${mark}`).sort();
  const expected = [1, 2].flatMap((mark) => devices.map((_, n) => `device-${n} ${mark}`)).sort();
  expect(published).toEqual(expected);
  expect(service.child.exitCode).toBeNull();
});
