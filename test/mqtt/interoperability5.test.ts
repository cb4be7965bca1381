/**
 * What Paho's interoperability tests of MQTT 5 ask of a broker (eclipse/paho.mqtt.testing, client_test5.py), with a real client. Vigil passes no
 * messages from client to client: a message that is stored stands for one that arrives, and what it lacks is declared in CONNACK.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { IClientOptions, IClientPublishOptions, MqttClient } from 'mqtt';
import type { IConnackPacket, ISubackPacket } from 'mqtt-packet';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { AUTH, CONNECT5, connectDevice, connectRaw, createObject, type RawDevice } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const clients: MqttClient[] = [];
const raws: RawDevice[] = [];
let count = 0;

afterEach(async () => {
  for (const raw of raws.splice(0)) raw.socket.destroy();
  for (const client of clients.splice(0)) await client.endAsync(true);
});

async function create(fields: object = {}): Promise<string> {
  const id = `interoperable-${++count}`;
  await createObject(service.admin, id, fields);
  return id;
}

async function connect(id: string, options: IClientOptions = {}): Promise<MqttClient> {
  const client = await connectDevice(service.service.mqttUrl as string, id, { protocolVersion: 5, ...options });
  clients.push(client);
  return client;
}

async function openRaw(id: string, properties: object = {}, more: object = {}): Promise<RawDevice> {
  const raw = await connectRaw(service.service.mqttUrl as string, 5);
  raws.push(raw);
  raw.send(CONNECT5(id, properties, more));
  await until(() => raw.received.length > 0, 'CONNACK');
  return raw;
}

const connackOf = (raw: RawDevice): IConnackPacket => raw.received[0] as IConnackPacket;

async function valuesOf(id: string): Promise<unknown[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  return body.flatMap(({ n }: { n?: number }) => n ?? []);
}

const command = (id: string, name: string, params: object = {}, query = '') =>
  service.admin('POST', `objects/${id}/commands/${name}${query}`, params);

test('basic: takes QoS 0, 1 and 2, and ends a second CONNECT and another protocol', async () => {
  const id = await create();
  const client = await connect(id);
  for (const qos of [0, 1, 2] as const) await client.publishAsync('base/state', `{"n":${qos}}`, { qos });
  await until(async () => (await valuesOf(id)).length === 3, 'three messages');
  expect((await valuesOf(id)).sort()).toEqual([0, 1, 2]);
  await client.endAsync();
  const twice = await openRaw(id);
  twice.send(CONNECT5(id));
  await twice.closed;
  expect(twice.received.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x82 });
  const other = await connectRaw(service.service.mqttUrl as string, 5);
  raws.push(other);
  other.socket.write(Buffer.from([0x10, 8, 0, 2, 0x68, 0x6a, 5, 2, 0, 60]));
  await other.closed;
  expect(other.received.filter(({ cmd }) => cmd !== 'connack')).toEqual([]);
});

describe('session expiry', () => {
  test('is declared as 0, and no session is present, whatever a client asks for', async () => {
    const id = await create();
    for (const [clean, sessionExpiryInterval] of [
      [true, 0],
      [false, 0],
      [true, 5],
      [false, 5],
      [false, 0xffffffff],
    ] as const) {
      const raw = await openRaw(id, { sessionExpiryInterval }, { clean });
      const { reasonCode, sessionPresent, properties } = connackOf(raw);
      const declared = sessionExpiryInterval === 0 ? undefined : 0;
      expect({ reasonCode, sessionPresent, declared: properties?.sessionExpiryInterval }).toEqual({
        reasonCode: 0,
        sessionPresent: false,
        declared,
      });
      raw.send({ cmd: 'disconnect', reasonCode: 0 });
      await raw.closed;
    }
  });

  const will = { topic: 'base/state', payload: Buffer.from('{"n":9}'), qos: 1, retain: false };

  test('cannot begin with DISCONNECT, which then does not count: the will is stored', async () => {
    const id = await create();
    const raw = await openRaw(id, {}, { will });
    raw.send({ cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 5 } });
    await raw.closed;
    expect(raw.received.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x82 });
    await until(async () => (await valuesOf(id)).length > 0, 'the will');
    expect(await valuesOf(id)).toEqual([9]);
  });

  test('may change with DISCONNECT where CONNECT has one', async () => {
    const id = await create();
    const raw = await openRaw(id, { sessionExpiryInterval: 1 }, { will });
    raw.send({ cmd: 'disconnect', reasonCode: 0, properties: { sessionExpiryInterval: 5 } });
    await raw.closed;
    expect(raw.received.filter(({ cmd }) => cmd === 'disconnect')).toEqual([]);
    const isOffline = async () => (await service.admin('GET', `objects/${id}`)).body.state.online === false;
    await until(isOffline, 'the device to be offline');
    expect(await valuesOf(id)).toEqual([]);
  });
});

test.each<[string, NonNullable<IClientPublishOptions['properties']>]>([
  ['user properties', { userProperties: { a: '2', c: '3' } }],
  ['user properties of the same name', { userProperties: { a: ['1', '2'] } }],
  ['a payload format and a content type', { payloadFormatIndicator: true, contentType: 'My name' }],
  ['a publication expiry', { messageExpiryInterval: 1 }],
  ['a request', { responseTopic: 'base/commands/answer', correlationData: Buffer.from('334') }],
])('stores messages of every QoS with %s', async (_name, properties) => {
  const id = await create();
  const client = await connect(id);
  for (const qos of [0, 1, 2] as const) await client.publishAsync('base/state', `{"n":${qos}}`, { qos, properties });
  await until(async () => (await valuesOf(id)).length === 3, 'three messages');
});

test('flow control: declares Receive Maximum, and keeps to that of the client', async () => {
  const id = await create();
  const raw = await openRaw(id, { receiveMaximum: 2 });
  expect(connackOf(raw).properties?.receiveMaximum).toBe(LIMITS.mqttStoringPerDevice);
  raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'base/commands/#', qos: 1 }] });
  for (const name of ['a', 'b', 'c']) await command(id, name);
  const sent = () => raw.received.flatMap((packet) => (packet.cmd === 'publish' ? [packet] : []));
  await until(() => sent().length === 1, 'the first command');
  for (const at of [0, 1]) {
    raw.send({ cmd: 'puback', messageId: sent()[at]?.messageId, reasonCode: 0 } as never);
    await until(() => sent().length === at + 2, 'the next command');
  }
  expect(sent().map(({ topic }) => topic)).toEqual(['base/commands/a', 'base/commands/b', 'base/commands/c']);
});

test('maximum packet size: sends nothing larger, and declares its own', async () => {
  const id = await create();
  const raw = await openRaw(id, { maximumPacketSize: 300 });
  expect(connackOf(raw).properties?.maximumPacketSize).toBe(LIMITS.mqttPacketBytes + 4);
  raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: 'base/commands/#', qos: 1 }] });
  await command(id, 'large', { text: 'x'.repeat(400) });
  await command(id, 'small');
  const sent = () => raw.received.flatMap((packet) => (packet.cmd === 'publish' ? [packet.topic] : []));
  await until(() => sent().length > 0, 'a command');
  expect(sent()).toEqual(['base/commands/small']);
});

test('topic alias: takes as many as it declares, and refuses one more', async () => {
  const id = await create();
  const raw = await openRaw(id);
  const most = connackOf(raw).properties?.topicAliasMaximum as number;
  const publish = (topicAlias: number, topic: string, n: number) =>
    raw.send({
      cmd: 'publish',
      topic,
      payload: JSON.stringify({ n }),
      qos: 1,
      messageId: n,
      dup: false,
      retain: false,
      properties: { topicAlias },
    });
  for (let alias = 1; alias <= most; alias++) publish(alias, 'base/state', alias);
  publish(most, '', most + 1);
  await until(async () => (await valuesOf(id)).length === most + 1, 'all messages');
  publish(most + 1, 'base/state', most + 2);
  await raw.closed;
  expect(raw.received.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x94 });
});

test('request and response: a command says where its result is expected, and takes it from there', async () => {
  const id = await create();
  const client = await connect(id);
  await client.subscribeAsync('base/commands/#', { qos: 1 });
  client.on('message', (_topic, _payload, { properties }) => {
    const { responseTopic, correlationData } = properties ?? {};
    if (responseTopic === undefined) return;
    const answer = { qos: 1, properties: { ...(correlationData && { correlationData }) } } as const;
    void client.publishAsync(responseTopic, '{"status":"done","result":{"angle":90}}', answer);
  });
  const { headers } = await command(id, 'turn');
  const commandId = (headers.location as string).split('/').at(-1);
  const read = async () => (await service.admin('GET', `commands/${commandId}`)).body;
  await until(async () => (await read()).status === 'done', 'the result');
  expect((await read()).result).toEqual({ angle: 90 });
});

test('will delay: ends with the session, which ends with its connection', async () => {
  const id = await create();
  const properties = { willDelayInterval: 3_600 };
  const will = { topic: 'base/state', payload: Buffer.from('{"n":9}'), qos: 1, retain: false, properties };
  const raw = await openRaw(id, { sessionExpiryInterval: 7_200 }, { will });
  expect(connackOf(raw).properties?.sessionExpiryInterval).toBe(0);
  raw.socket.destroy();
  await until(async () => (await valuesOf(id)).length > 0, 'the will');
});

test('server keep-alive: declares a shorter one than the client asks for', async () => {
  const raw = await openRaw(await create(), {}, { keepalive: 60_000 });
  expect(connackOf(raw).properties?.serverKeepAlive).toBe(LIMITS.mqttKeepAliveMaxS);
});

test('assigned client identifier: gives the name of the device to a client without one', async () => {
  const id = await create({ config: { auth: { password: AUTH.password } } });
  const client = await connect('', { username: id, clean: true });
  await client.publishAsync('base/state', '{"n":1}', { qos: 1 });
  expect(await valuesOf(id)).toEqual([1]);
});

describe('subscribe options', () => {
  test.each([{ nl: true }, { rap: true }, { rh: 0 }, { rh: 1 }, { rh: 2 }, { nl: true, rap: true, rh: 2 }])(
    'are taken where they mean nothing for commands: %j',
    async (options) => {
      const id = await create();
      const client = await connect(id);
      const granted = await client.subscribeAsync({ 'base/commands/#': { qos: 2, ...options } as never });
      expect(granted).toMatchObject([{ topic: 'base/commands/#', qos: 1 }]);
      const arrived: string[] = [];
      client.on('message', (topic) => arrived.push(topic));
      await command(id, 'turn');
      await until(() => arrived.length > 0, 'the command');
      // No second subscription brings what was sent before.
      await client.subscribeAsync('base/commands/#', { qos: 1 });
      await client.publishAsync('base/state', '{"n":1}', { qos: 1 });
      expect(arrived).toEqual(['base/commands/turn']);
    },
  );

  test.each<[string, object, number, keyof NonNullable<IConnackPacket['properties']>]>([
    ['$share/group/base/commands/#', {}, 0x9e, 'sharedSubscriptionAvailable'],
    ['base/commands/#', { subscriptionIdentifier: 1 }, 0xa1, 'subscriptionIdentifiersAvailable'],
  ])('are refused where CONNACK declares that they are missing: %s %j', async (topic, properties, code, declared) => {
    const raw = await openRaw(await create());
    expect(connackOf(raw).properties?.[declared]).toBe(false);
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic, qos: 1 }], properties });
    await until(() => raw.received.length > 1, 'SUBACK');
    expect((raw.received[1] as ISubackPacket).granted).toEqual([code]);
  });
});
