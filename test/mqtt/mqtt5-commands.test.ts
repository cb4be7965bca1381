/** Commands to devices of MQTT 5: how long they are valid, where results are expected, and what a device refuses. */
import { afterEach, expect, test } from '@jest/globals';
import type { IPublishPacket, Packet } from 'mqtt-packet';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { CONNECT5, connectDevice, connectRaw, createObject, type RawDevice } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const endings: (() => unknown)[] = [];
let count = 0;

const { commandConfirmMs } = LIMITS;
afterEach(async () => {
  Object.assign(LIMITS, { commandConfirmMs });
  for (const end of endings.splice(0).reverse()) await end();
});

/** A device that subscribes, and confirms only what the test asks for. */
async function listen(properties: object = {}, fields: object = {}): Promise<RawDevice & { id: string }> {
  const id = `commanded-${++count}`;
  await createObject(service.admin, id, fields);
  const raw = await connectRaw(service.service.mqttUrl as string, 5);
  endings.push(() => raw.socket.destroy());
  const subscriptions = [
    { topic: 'base/commands/#', qos: 1 as const },
    { topic: 'cmnd/#', qos: 1 as const },
  ];
  raw.send(CONNECT5(id, properties), { cmd: 'subscribe', messageId: 1, subscriptions });
  await until(() => raw.received.some(({ cmd }) => cmd === 'suback'), 'SUBACK');
  return { ...raw, id };
}

/** Sends a command; gives its `_id`. */
async function command(id: string, name: string, params: object = {}, query = ''): Promise<string> {
  const { headers } = await service.admin('POST', `objects/${id}/commands/${name}${query}`, params);
  return (headers.location as string).split('/').at(-1) as string;
}

// biome-ignore lint/suspicious/noExplicitAny: commands
const read = async (commandId: string): Promise<any> => (await service.admin('GET', `commands/${commandId}`)).body;
const becomes = (commandId: string, status: string) =>
  until(async () => (await read(commandId)).status === status, `${commandId} to be ${status}`);
const publishesOf = (raw: RawDevice): IPublishPacket[] =>
  raw.received.filter((packet): packet is IPublishPacket => packet.cmd === 'publish');
const puback = (messageId: number | undefined, more: object = {}): Packet =>
  ({ cmd: 'puback', messageId, reasonCode: 0, ...more }) as Packet;

test('sends with a command how long it is valid, and where its result is expected', async () => {
  const children = [{ id: 'power', type: 'action', params: { topic: 'cmnd/lamp/POWER', payload: 'ON' } }];
  const data = { id: 'root', type: 'subsystem', children };
  const { body } = await service.admin('POST', 'models', { name: 'lamp', data });
  const raw = await listen({}, { model: body._id });
  const commandId = await command(raw.id, 'power', {}, '?ttl=1min');
  await until(() => publishesOf(raw).length === 1, 'the command');
  const { topic, payload, messageId, properties } = publishesOf(raw)[0] as IPublishPacket;
  expect([topic, payload.toString()]).toEqual(['cmnd/lamp/POWER', 'ON']);
  expect(properties).toEqual({
    messageExpiryInterval: expect.any(Number),
    responseTopic: `base/commands/${commandId}/result`,
    correlationData: Buffer.from(commandId),
  });
  expect(properties?.messageExpiryInterval).toBeGreaterThan(0);
  expect(properties?.messageExpiryInterval).toBeLessThanOrEqual(60);
  raw.send(puback(messageId));
  await becomes(commandId, 'delivered');
  // A device that knows nothing of the topic answers where the command said.
  const { responseTopic, correlationData } = properties as { responseTopic: string; correlationData: Buffer };
  const answer = { qos: 1, messageId: 7, properties: { correlationData }, dup: false, retain: false } as const;
  raw.send({ cmd: 'publish', topic: responseTopic, payload: '{"status":"done","result":3}', ...answer });
  await until(() => raw.received.some(({ cmd }) => cmd === 'puback'), 'PUBACK');
  expect(await read(commandId)).toMatchObject({ status: 'done', result: 3 });
});

test('marks a command failed that the device refuses, and sends the next one', async () => {
  const raw = await listen();
  const first = await command(raw.id, 'a');
  const second = await command(raw.id, 'b');
  await until(() => publishesOf(raw).length === 1, 'the first command');
  raw.send(puback(publishesOf(raw)[0]?.messageId, { reasonCode: 0x83 }));
  await until(() => publishesOf(raw).length === 2, 'the second command');
  expect(await read(first)).toMatchObject({ status: 'failed', result: { reasonCode: 0x83 } });
  // Not an error: nobody else subscribes to it.
  raw.send(puback(publishesOf(raw)[1]?.messageId, { reasonCode: 0x10 }));
  await becomes(second, 'delivered');
});

test('marks a command failed that is larger than the device accepts, and sends the next one', async () => {
  const raw = await listen({ maximumPacketSize: 250 });
  const large = await command(raw.id, 'a', { text: 'x'.repeat(300) });
  const small = await command(raw.id, 'b');
  await until(() => publishesOf(raw).length === 1, 'the small command');
  expect(publishesOf(raw)[0]?.topic).toBe('base/commands/b');
  expect(await read(large)).toMatchObject({ status: 'failed', result: { message: expect.stringContaining('250') } });
  raw.send(puback(publishesOf(raw)[0]?.messageId));
  await becomes(small, 'delivered');
});

test('sends no more commands than the device takes without a confirmation', async () => {
  Object.assign(LIMITS, { commandConfirmMs: 50 });
  const raw = await listen({ receiveMaximum: 2 });
  const ids: string[] = [];
  for (const name of ['a', 'b', 'c']) ids.push(await command(raw.id, name));
  await until(() => publishesOf(raw).length === 2, 'two commands');
  await service.settled();
  await until(async () => (await read(ids[1] as string)).status === 'sent', 'the second command to be sent');
  raw.send({ cmd: 'pingreq' });
  await until(() => raw.received.at(-1)?.cmd === 'pingresp', 'PINGRESP');
  expect(publishesOf(raw)).toHaveLength(2);
  expect((await read(ids[2] as string)).status).toBe('queued');
  raw.send(puback(publishesOf(raw)[0]?.messageId));
  await until(() => publishesOf(raw).length === 3, 'the third command');
  expect(new Set(publishesOf(raw).map(({ messageId }) => messageId)).size).toBe(3);
});

test.each([3, 4, 5] as const)(
  'delivers commands to a client of version %i and stores their results',
  async (version) => {
    const id = `commanded-${++count}`;
    await createObject(service.admin, id);
    const protocol = version === 3 ? ({ protocolId: 'MQIsdp' } as const) : {};
    const client = await connectDevice(service.service.mqttUrl as string, id, {
      protocolVersion: version,
      ...protocol,
    });
    endings.push(() => client.end(true));
    client.on('message', (_topic, payload) => {
      const { _id } = JSON.parse(payload.toString());
      client.publish(`base/commands/${_id}/result`, '{"status":"done"}', { qos: 1 });
    });
    await client.subscribeAsync('base/commands/+', { qos: 1 });
    await becomes(await command(id, 'stop'), 'done');
  },
);
