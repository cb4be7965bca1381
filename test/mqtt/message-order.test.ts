/** Messages of a device are stored in the order in which they were sent, also where one of them takes long to parse. */
import { afterEach, expect, test } from '@jest/globals';
import type { MqttClient } from 'mqtt';
import { LIMITS } from '../../src/core/limits.js';
import { entityOf } from '../support/answers.js';
import { useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';

// Every packet of an array takes a turn.
Object.assign(LIMITS, { turnMs: 0 });

const service = useService();
const devices: MqttClient[] = [];
afterEach(() => {
  for (const device of devices.splice(0)) device.end(true);
});

const KMH = { type: 'argument', id: 'kmh', dataType: 'number', formula: 'p.n * 3.6' };
const SENT = Array.from({ length: 60 }, (_, n) => n);

test.each([0, 1] as const)('keeps the order of messages of QoS %i behind an array with formulas', async (qos) => {
  const data = { type: 'subsystem', children: [KMH] };
  const model = entityOf(await service.admin('POST', 'models', { name: 'model', data }))._id;
  const id = `truck-${qos}`;
  await createObject(service.admin, id, { model });
  const device = await connectDevice(service.service.mqttUrl as string, id);
  devices.push(device);
  const publish = (body: unknown, of: 0 | 1 = qos) =>
    device.publishAsync('base/state', JSON.stringify(body), { qos: of });
  await Promise.all([
    publish(SENT.slice(0, 50).map((n) => ({ n }))),
    publish({ n: 50 }),
    publish({ n: 51 }),
    publish(SENT.slice(52, 58).map((n) => ({ n }))),
    publish({ n: 58 }),
    publish({ n: 59 }, 1),
  ]);
  const { body } = await service.admin('GET', `objects/${id}/packets?sortBy=_ts&limit=100`);
  const stored = body.filter(({ n }: { n?: number }) => n !== undefined);
  expect(stored.map(({ n, kmh }: { n: number; kmh: number }) => [n, kmh])).toEqual(SENT.map((n) => [n, n * 3.6]));
});
