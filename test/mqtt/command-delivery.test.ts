/** Delivery of commands over MQTT: once, in order, on any instance, or after the device connects. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { ObjectId } from 'mongodb';
import type { IClientOptions, MqttClient } from 'mqtt';
import { ADMIN, startSecond, useService } from '../support/fixture.js';
import { bytesOf, CONNECT, connectDevice, connectRaw, createObject, type RawDevice } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const endings: (() => unknown)[] = [];
let count = 0;

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

interface Got {
  readonly topic: string;
  readonly text: string;
  readonly qos: number;
}

interface Device {
  readonly client: MqttClient;
  readonly got: Got[];
}

/** A device that listens, and confirms what it gets. */
async function listen(id: string, options: IClientOptions = {}, url = service.service.mqttUrl): Promise<Device> {
  const client = await connectDevice(url as string, id, options);
  endings.push(() => client.end(true));
  const got: Got[] = [];
  client.on('message', (topic, payload, { qos }) => got.push({ topic, text: payload.toString(), qos }));
  await client.subscribeAsync('base/commands/#', { qos: 1 });
  return { client, got };
}

/** A device that subscribes, and confirms only what the test asks for. */
async function listenRaw(id: string): Promise<RawDevice> {
  const raw = await connectRaw(service.service.mqttUrl as string);
  endings.push(() => raw.socket.destroy());
  const subscriptions = [{ topic: 'base/commands/#', qos: 1 as const }];
  raw.socket.write(bytesOf(CONNECT(id), { cmd: 'subscribe', messageId: 1, subscriptions }));
  await until(() => raw.received.some(({ cmd }) => cmd === 'suback'));
  return raw;
}

async function create(fields: object = {}): Promise<string> {
  const id = `device-${++count}`;
  await createObject(service.admin, id, fields);
  return id;
}

/** Sends a command; gives its `_id`. */
async function command(id: string, name: string, params: object = {}, query = ''): Promise<string> {
  const { headers, text, status } = await service.admin('POST', `objects/${id}/commands/${name}${query}`, params);
  if (status !== 200) throw new Error(text);
  return (headers.location as string).split('/').at(-1) as string;
}

// biome-ignore lint/suspicious/noExplicitAny: commands
const read = async (commandId: string): Promise<any> => (await service.admin('GET', `commands/${commandId}`)).body;
const statusOf = async (commandId: string): Promise<string> => (await read(commandId)).status;
const becomes = (commandId: string, status: string) =>
  until(async () => (await statusOf(commandId)) === status, `${commandId} to be ${status}`);

const publishesOf = (raw: RawDevice) =>
  raw.received.flatMap((packet) => (packet.cmd === 'publish' ? [packet as typeof packet & { cmd: 'publish' }] : []));

test('delivers a command to a subscribed device at once, and stores and publishes its result', async () => {
  const id = await create();
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  endings.push(() => listener.close());
  const { client, got } = await listen(id);
  const commandId = await command(id, 'setInterval', { seconds: 5 });
  await becomes(commandId, 'delivered');
  const sent = { _id: commandId, command: 'setInterval', params: { seconds: 5 } };
  expect(got).toEqual([{ topic: 'base/commands/setInterval', text: JSON.stringify(sent), qos: 1 }]);
  const answer = { status: 'done', result: { was: 60 } };
  await client.publishAsync(`base/commands/${commandId}/result`, JSON.stringify(answer), { qos: 1 });
  expect(await read(commandId)).toMatchObject({ ...answer, times: { queued: expect.any(Number) } });
  await service.settled();
  const events = listener.take().filter(({ name }) => name.startsWith('object-command'));
  expect(events.map(({ name }) => name)).toEqual(['object-command-req', 'object-command-res']);
});

test('stores a failed result, and refuses a result for a command of another object', async () => {
  const id = await create();
  const other = await create();
  const { client } = await listen(id);
  const own = await command(id, 'stop');
  const foreign = await command(other, 'stop');
  await becomes(own, 'delivered');
  for (const commandId of [own, foreign]) {
    await client.publishAsync(`base/commands/${commandId}/result`, '{"status":"failed","result":"jammed"}', { qos: 1 });
  }
  expect(await read(own)).toMatchObject({ status: 'failed', result: 'jammed' });
  expect(await statusOf(foreign)).toBe('queued');
});

test('delivers queued commands in order after a reconnect, except expired ones', async () => {
  const id = await create();
  const over = await command(id, 'late', {}, '?ttl=1s');
  const names = ['one', 'two', 'three', 'four'];
  for (const name of names) await command(id, name);
  await becomes(over, 'expired');
  const { got } = await listen(id);
  await until(() => got.length >= names.length);
  await command(id, 'five');
  await until(() => got.length > names.length);
  expect(got.map(({ topic }) => topic.split('/')[2])).toEqual([...names, 'five']);
});

test('sends nothing to a device without a subscription', async () => {
  const id = await create();
  const raw = await connectRaw(service.service.mqttUrl as string);
  endings.push(() => raw.socket.destroy());
  raw.send(CONNECT(id));
  const commandId = await command(id, 'stop');
  await service.settled();
  raw.send({ cmd: 'pingreq' });
  await until(() => raw.received.at(-1)?.cmd === 'pingresp');
  expect(publishesOf(raw)).toEqual([]);
  expect(await statusOf(commandId)).toBe('queued');
});

test('marks a command delivered that another connection has taken before the device confirms it', async () => {
  const id = await create();
  const raw = await listenRaw(id);
  const _id = await command(id, 'ping');
  await until(() => publishesOf(raw).length === 1);
  // As a connection does that has broken without a word, on an instance that does not know it yet.
  const commands = service.client.db().collection('commands');
  await commands.updateOne({ _id: new ObjectId(_id) }, { $set: { _holder: 'another connection' } });
  raw.send({ cmd: 'puback', messageId: publishesOf(raw)[0]?.messageId as number });
  await until(async () => (await commands.findOne({ _id: new ObjectId(_id) }))?.status === 'delivered');
  const next = await command(id, 'pong');
  await until(() => publishesOf(raw).length === 2);
  expect(publishesOf(raw).map(({ payload }) => JSON.parse(String(payload))._id)).toEqual([_id, next]);
});

test('resends unconfirmed commands first after a reconnect, but not confirmed ones', async () => {
  const id = await create();
  const raw = await listenRaw(id);
  const first = await command(id, 'a');
  const second = await command(id, 'b');
  const third = await command(id, 'c');
  await until(() => publishesOf(raw).length === 1);
  raw.send({ cmd: 'puback', messageId: publishesOf(raw)[0]?.messageId as number });
  await until(() => publishesOf(raw).length === 2);
  // Confirmations of nothing that was sent are none.
  raw.send({ cmd: 'puback', messageId: 999 });
  expect([await statusOf(first), await statusOf(second), await statusOf(third)]).toEqual([
    'delivered',
    'sent',
    'queued',
  ]);
  raw.socket.destroy();
  await becomes(second, 'queued');
  const { got } = await listen(id);
  await until(() => got.length === 2);
  expect(got.map(({ topic }) => topic)).toEqual(['base/commands/b', 'base/commands/c']);
});

test('lets a single command wait again whose connection has ended before it is confirmed', async () => {
  const id = await create();
  const raw = await listenRaw(id);
  const only = await command(id, 'a');
  await until(() => publishesOf(raw).length === 1);
  await becomes(only, 'sent');
  raw.socket.destroy();
  await becomes(only, 'queued');
});

describe('delivery', () => {
  test('works with QoS 0 without confirmation', async () => {
    const id = await create();
    const { client, got } = await listen(id);
    await client.unsubscribeAsync('base/commands/#');
    await client.subscribeAsync('base/commands/+', { qos: 0 });
    const commandId = await command(id, 'stop');
    await becomes(commandId, 'delivered');
    expect(got).toMatchObject([{ topic: 'base/commands/stop', qos: 0 }]);
  });

  test('uses the topic and payload of the model', async () => {
    const children = [
      { id: 'power', type: 'action', params: { topic: 'cmnd/lamp/POWER', payload: 'ON' } },
      { id: 'dim', type: 'action', params: { payload: { level: 3 } } },
    ];
    const data = { id: 'root', type: 'subsystem', children };
    const { body } = await service.admin('POST', 'models', { name: 'lamp', data });
    const id = await create({ model: body._id });
    const { client, got } = await listen(id);
    await client.subscribeAsync('cmnd/lamp/POWER', { qos: 1 });
    await command(id, 'power');
    await command(id, 'power', { payload: 'OFF', topic: 'cmnd/other' });
    await command(id, 'dim');
    await until(() => got.length === 3);
    expect(got.map(({ topic, text }) => [topic, text])).toEqual([
      ['cmnd/lamp/POWER', 'ON'],
      ['cmnd/lamp/POWER', 'OFF'],
      ['base/commands/dim', '{"level":3}'],
    ]);
  });
});

describe('on several instances', () => {
  const startOther = () => startSecond(service, endings);

  test('sends a command once, through the instance to which the device is connected', async () => {
    const id = await create();
    const other = await startOther();
    const { got } = await listen(id, {}, other.service.mqttUrl);
    const commandId = await command(id, 'stop');
    await becomes(commandId, 'delivered');
    await Promise.all([service.settled(), other.settled()]);
    expect(got).toHaveLength(1);
  });
});

describe('a phone with OwnTracks', () => {
  const TOPIC = 'owntracks/jane/phone/cmd';

  async function phone(fields: object, filters: readonly string[]) {
    const id = await create(fields);
    const client = await connectDevice(service.service.mqttUrl as string, id);
    endings.push(() => client.end(true));
    const got: { topic: string; body: unknown }[] = [];
    client.on('message', (topic, payload) => got.push({ topic, body: JSON.parse(payload.toString()) }));
    const wanted = Object.fromEntries(filters.map((filter) => [filter, { qos: 1 as const }]));
    // The client takes a refusal for a failure of all.
    const granted = await new Promise((resolve) => {
      client.subscribe(wanted, (_error, _granted, suback) => resolve(suback?.granted));
    });
    return { id, got, granted, client };
  }

  test('gets commands as its app expects them, which are delivered when it confirms them', async () => {
    const { id, got, granted } = await phone({}, ['owntracks/+/+', TOPIC, 'owntracks/+/+/event']);
    expect(granted).toEqual([128, 1, 128]);
    const first = await command(id, 'reportLocation');
    const second = await command(id, 'setConfiguration', { configuration: { _type: 'configuration', monitoring: 2 } });
    await becomes(second, 'delivered');
    expect(await statusOf(first)).toBe('delivered');
    expect(got).toEqual([
      { topic: TOPIC, body: { _type: 'cmd', action: 'reportLocation' } },
      {
        topic: TOPIC,
        body: { _type: 'cmd', action: 'setConfiguration', configuration: { _type: 'configuration', monitoring: 2 } },
      },
    ]);
  });

  test.each(['family/phones/jane/phone', 'jane/phone', 'phone', '/owntracks/jane/phone'])(
    'gets commands below another base of its topics: %s',
    async (base) => {
      const { id, got, granted } = await phone({}, [`${base}/cmd`]);
      expect(granted).toEqual([1]);
      await becomes(await command(id, 'reportLocation'), 'delivered');
      expect(got).toEqual([{ topic: `${base}/cmd`, body: { _type: 'cmd', action: 'reportLocation' } }]);
    },
  );

  test('gets commands below the base of its last message, if it has subscribed below several', async () => {
    const bases = ['owntracks/jane/phone', 'family/jane/phone', 'phone'];
    const { id, got, client } = await phone(
      {},
      bases.map((base) => `${base}/cmd`),
    );
    const location = JSON.stringify({ _type: 'location', lat: 1, lon: 2, tst: 1_795_500_000 });
    const published = ['family/jane/phone', 'owntracks/jane/phone/event', 'phone', 'family/jane/phone/waypoint'];
    for (const topic of published) {
      await client.publishAsync(topic, location, { qos: 1 });
      await becomes(await command(id, 'reportLocation'), 'delivered');
    }
    const expected = [1, 0, 2, 1].map((nth) => `${bases[nth]}/cmd`);
    expect(got.map(({ topic }) => topic)).toEqual(expected);
  });

  test('gets commands in their usual form on a topic of its model that ends like those of OwnTracks', async () => {
    const data = { children: [{ id: 'stop', name: 'stop', type: 'action', params: { topic: 'plant/pump/cmd' } }] };
    const { body: model } = await service.admin('POST', 'models', { name: 'pump', data });
    const { id, got } = await phone({ model: model._id }, ['plant/pump/cmd']);
    const _id = await command(id, 'stop', { within: 3 });
    await becomes(_id, 'delivered');
    expect(got).toMatchObject([{ topic: 'plant/pump/cmd', body: { _id, command: 'stop' } }]);
  });

  test.each<[string, readonly string[], number[]]>([
    ['of the service', ['base/cmd', 'base/state/cmd'], [128, 128]],
    ['without a base', ['cmd', '/cmd', '$SYS/cmd', '+/cmd'], [128, 128, 128, 128]],
    ['of an empty level', ['a//cmd', 'family/+/cmd', '//a/cmd'], [128, 128, 128]],
    ['of all users', ['owntracks/+/+/cmd'], [128]],
    ['of all devices', ['owntracks/jane/+/cmd'], [128]],
    ['of everything', ['owntracks/#'], [128]],
    ['of an empty name', ['owntracks//phone/cmd'], [128]],
    ['below its own', [`${TOPIC}/more`], [128]],
  ])('may not subscribe to the commands %s', async (_name, filters, expected) => {
    expect((await phone({}, filters)).granted).toEqual(expected);
  });

  test('gets commands of Vigil in their usual form if it has also subscribed to these', async () => {
    const { id, got } = await phone({}, [TOPIC, 'base/commands/#']);
    const _id = await command(id, 'reportLocation');
    await becomes(_id, 'delivered');
    expect(got).toEqual([
      { topic: 'base/commands/reportLocation', body: { _id, command: 'reportLocation', params: {} } },
    ]);
  });

  test('gets the payload that its model defines', async () => {
    const params = { payload: { _type: 'cmd', action: 'dump' } };
    const data = { children: [{ id: 'look', name: 'look', type: 'action', params }] };
    const { body: model } = await service.admin('POST', 'models', { name: 'phone', data });
    const { id, got } = await phone({ model: model._id }, [TOPIC]);
    await becomes(await command(id, 'look'), 'delivered');
    expect(got).toEqual([{ topic: TOPIC, body: params.payload }]);
  });
});
