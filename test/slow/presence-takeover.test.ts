/** Presence when an instance dies: another instance sets its devices offline. */
import { afterEach, expect, test } from '@jest/globals';
import type { MqttClient } from 'mqtt';
import { LIMITS } from '../../src/core/limits.js';
import { startSecond, useService } from '../support/fixture.js';
import { startInstance } from '../support/instance.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const DEVICES = 20;
// A device that moves has so much time; and a killed instance is not taken for dead before because its machine is busy.
Object.assign(LIMITS, { presenceSilentMs: 15_000 });

const service = useService();
const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

async function connect(id: string, url: string): Promise<MqttClient> {
  const client = await connectDevice(url, id);
  endings.push(() => client.end(true));
  return client;
}

/** `online` of every packet of the object, in order. */
async function onlinesOf(id: string): Promise<boolean[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  return body.map(({ online }: { online: boolean }) => online);
}

test('sets each device of a killed instance offline once, except one that reconnected to another instance', async () => {
  const [killed] = await Promise.all([
    startInstance(service.mongodbUri, { mqtt: true, limits: { presenceSilentMs: LIMITS.presenceSilentMs } }),
    startSecond(service, endings),
    startSecond(service, endings),
  ]);
  endings.push(killed.stop);
  const ids = Array.from({ length: DEVICES }, (_, at) => `device-${at}`);
  await Promise.all(ids.map((id) => createObject(service.admin, id)));
  const devices = await Promise.all(ids.map((id) => connect(id, killed.mqttUrl)));
  const [moved, ...lost] = ids as [string, ...string[]];
  await killed.kill();
  await until(() => !devices[0]?.connected, 'the connection of the first device to be closed');
  await connect(moved, service.service.mqttUrl as string);
  const isOffline = async (id: string) =>
    (await service.admin('GET', `objects/${id}?only=state.online`)).body.state?.online === false;
  await until(async () => (await Promise.all(lost.map(isOffline))).every(Boolean), 'the other devices to be offline');
  for (const id of lost) expect(await onlinesOf(id)).toEqual([true, false]);
  expect(await onlinesOf(moved)).toEqual([true]);
});
