/** Devices that are logged in over MQTT and publish as OwnTracks and Shelly do. */
import { afterEach, expect, test } from '@jest/globals';
import type { MqttClient } from 'mqtt';
import { useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { PAYLOADS } from '../support/payloads.js';
import { until } from '../support/until.js';

const service = useService({ env: { MQTT_PORT: '0', LOG_LEVEL: 'warn' } });

let device: MqttClient | undefined;
afterEach(() => device?.endAsync(true));

const bodyOf = (kind: string): Record<string, unknown> =>
  PAYLOADS.find((payload) => payload.kind === kind)?.body as Record<string, unknown>;

async function packetsOf(id: string): Promise<Record<string, unknown>[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  return body.filter((packet: object) => Object.keys(packet).length > 7);
}

async function refusedOf(id: string): Promise<{ topic: string; reason: string }[]> {
  return (await service.admin('GET', `objects/${id}/refused`)).body;
}

test('stores locations of OwnTracks once, whatever the names in the topic', async () => {
  await createObject(service.admin, 'phone');
  device = await connectDevice(service.service.mqttUrl as string, 'phone');
  const location = JSON.stringify(bodyOf('owntracks'));
  for (const topic of ['owntracks/jane/phone', 'owntracks/jane/phone']) {
    await device.publishAsync(topic, location, { qos: 1, retain: true });
  }
  await device.publishAsync(
    'owntracks/jane/phone/event',
    JSON.stringify({ ...bodyOf('owntracks'), _type: 'transition', event: 'enter' }),
    {
      qos: 1,
    },
  );
  for (const nothing of ['', JSON.stringify({ _type: 'card', name: 'Jane' })]) {
    await device.publishAsync('owntracks/jane/phone/info', nothing, { qos: 1 });
  }
  const packets = await packetsOf('phone');
  const expected = { time: 1_497_476_456_000, lat: 48.85833, lon: 2.29513, speed: 54, angle: 271, battery: 41 };
  expect(packets).toHaveLength(2);
  expect(packets).toEqual(
    expect.arrayContaining([expect.objectContaining(expected), expect.objectContaining({ event: 'enter' })]),
  );
  expect(await refusedOf('phone')).toEqual([]);
});

test('stores locations of OwnTracks below any base of its topics, and no other payload there', async () => {
  await createObject(service.admin, 'own-base');
  device = await connectDevice(service.service.mqttUrl as string, 'own-base');
  const location = { ...bodyOf('owntracks'), tst: 1_497_476_500 };
  await device.publishAsync('family/phones/jane/phone', JSON.stringify(location), { qos: 1, retain: true });
  await device.publishAsync('family/phones/jane/phone/info', '{"_type":"card","name":"Jane"}', { qos: 1 });
  const others = ['{"_type":"nonsense"}', '{"_type":', '{"type":"location"}', '"_type"'];
  for (const other of others) await device.publishAsync('family/phones/jane/phone', other, { qos: 1 });
  const expected = { time: 1_497_476_500_000, lat: 48.85833, lon: 2.29513, speed: 54, angle: 271, battery: 41 };
  expect(await packetsOf('own-base')).toEqual([expect.objectContaining(expected)]);
  await until(async () => (await refusedOf('own-base')).length === others.length, 'the others to be refused');
  for (const { reason } of await refusedOf('own-base')) expect(reason).toBe('the topic is not a topic of this device');
});

test('stores notifications of Shelly, and keeps why others are refused', async () => {
  await createObject(service.admin, 'shelly-1');
  device = await connectDevice(service.service.mqttUrl as string, 'shelly-1');
  await device.publishAsync('shelly-1/online', 'true', { qos: 1 });
  await device.publishAsync('shelly-1/events/rpc', JSON.stringify(bodyOf('shelly')), { qos: 1 });
  await device.publishAsync('shelly-1/events/rpc', JSON.stringify({ method: 'Switch.Set', params: {} }), { qos: 1 });
  await device.publishAsync('owntracks/jane/phone', JSON.stringify({ _type: 'encrypted', data: 'x' }), { qos: 1 });
  const [packet, ...more] = await packetsOf('shelly-1');
  expect(packet).toMatchObject({ time: 1_626_935_739_790, 'switch:0': { apower: 8.9, output: true } });
  expect(more).toEqual([]);
  await until(async () => (await refusedOf('shelly-1')).length === 2);
  expect(await refusedOf('shelly-1')).toMatchObject([
    { topic: 'shelly-1/events/rpc', reason: expect.stringContaining('method: expected NotifyStatus') },
    { topic: 'owntracks/jane/phone', reason: expect.stringContaining('encrypted') },
  ]);
});
