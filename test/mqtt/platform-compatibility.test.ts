/** What devices and models of other platforms with these topics send over MQTT, unmodified; each row says where it comes from. */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { MqttClient } from 'mqtt';
import { useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const clients: MqttClient[] = [];
let count = 0;

afterEach(() => {
  for (const client of clients.splice(0)) client.end(true);
});

/** The folders and parameters that exported models have, beside those of the thing itself. */
const argument = (id: string, dataType: string, reference: string | null = null) => ({
  id,
  name: id,
  active: true,
  type: 'argument',
  source: 'state',
  dataType,
  unit: null,
  reference,
  factor: 1,
  linear: true,
  display: { svg: null },
  children: [],
  _parentId: 'params',
});
const LEVELS = [
  {
    id: 'temperature-19e3h.levels.0',
    name: '-Infinity',
    type: 'level',
    index: 0,
    value: '-Infinity',
    color: '#f16059',
  },
];
const MODEL = {
  version: 1,
  base: 'mqtt',
  disabled: [],
  removed: [],
  description: 'Exported',
  props: { bots: true, protocol: 'mqtt', idPattern: 'mqtt-$tagname-$nanoid', order: 2.9, statuses: [] },
  data: {
    id: 'root',
    name: 'Exported',
    base: 'mqtt',
    type: 'subsystem',
    _isRoot: true,
    children: [
      { id: 'external-software-modules', active: true, copy: true, type: 'subsystem', children: [] },
      { id: 'configs', type: 'subsystem', children: [{ id: 'table', type: 'config', dataType: 'table', ctrl: '' }] },
      {
        id: 'params',
        name: 'Params',
        type: 'subsystem',
        dataType: 'string',
        source: 'state',
        children: [
          {
            id: 'server-info',
            type: 'subsystem',
            children: [argument('online', 'boolean', 'online'), argument('_ts', 'number', '_ts')],
          },
          { ...argument('temperature', 'number', 'kettle/temperature'), children: LEVELS },
          {
            ...argument('sensor', 'object', 'zigbee/0x00'),
            children: [argument('humidity', 'number', 'sensor.humidity')],
          },
          { ...argument('bed', 'object', 'printer/bed'), children: [argument('bed.actual', 'number')] },
          argument('in1.voltage', 'number', 'board/in1'),
          argument('3303_0_5601', 'number', '/3303/0/5601'),
          {
            id: 'mqtt-last',
            name: 'Last MQTT Publish',
            type: 'subsystem',
            children: [argument('topic', 'string', 'topic'), argument('payload', 'string', 'payload')],
          },
        ],
      },
      {
        id: 'cmds',
        name: 'Commands',
        type: 'subsystem',
        children: [
          { id: '!govecs_lock', type: 'action', service: 'gate', command: 'publish', params: { topic: null } },
          {
            id: 'led-on',
            type: 'action',
            command: 'publish',
            params: { topic: 'led_on', payload: null },
            description: null,
          },
        ],
      },
    ],
  },
};

async function createModelled(): Promise<string> {
  const id = `foreign-${++count}`;
  const { status, body } = await service.admin('POST', 'models', { name: id, ...MODEL });
  expect([status, body.data]).toEqual([200, MODEL.data]);
  await createObject(service.admin, id, { model: body._id });
  return id;
}

async function connect(id: string): Promise<MqttClient> {
  const client = await connectDevice(service.service.mqttUrl as string, id);
  clients.push(client);
  return client;
}

async function stateOf(id: string): Promise<object> {
  const { state } = (await service.admin('GET', `objects/${id}`)).body;
  const { _id, _ts, _oid, _gid, id: _own, time: _time, ...rest } = state;
  return rest;
}

describe('an exported model', () => {
  test.each<[from: string, topic: string, payload: string | Buffer, parameters: object]>([
    ['a parameter with a topic of its own', 'kettle/temperature', '21.30', { temperature: 21.3 }],
    ['a number as text', 'base/state', '{"temperature":"21.30"}', { temperature: 21.3 }],
    ['a member of another parameter', 'zigbee/0x00', '{"humidity":40}', { sensor: { humidity: 40 }, humidity: 40 }],
    ['a member with a dot in its name', 'printer/bed', '{"actual":60}', { bed: { actual: 60 } }],
    ['a dotted name with a topic', 'board/in1', '12.5', { in1: { voltage: 12.5 } }],
    ['a dotted name below base/state', 'base/state/in1.voltage', '12.5', { in1: { voltage: 12.5 } }],
    ['a name that begins with a digit', 'base/state/3303_0_5601', '5', { '3303_0_5601': 5 }],
    ['an undeclared topic', 'anything/else', 'plain text', {}],
    ['a topic called as a parameter of the last message', 'topic', 'x', {}],
    ['bytes that are no text', 'photo', Buffer.from([0xff, 0x00]), {}],
    ['the service’s own fields', 'base/state', '{"_ts":1,"online":false,"a":1}', { a: 1, online: false }],
  ])('stores what a device sends with %s, and the message', async (_, topic, payload, parameters) => {
    const id = await createModelled();
    const device = await connect(id);
    await device.publishAsync(topic, payload, { qos: 1 });
    const text = typeof payload === 'string' ? payload : payload.toString('base64');
    expect(await stateOf(id)).toEqual({ online: true, ...parameters, topic, payload: text });
  });

  test('keeps the message of an array with the newest packet', async () => {
    const id = await createModelled();
    const device = await connect(id);
    const now = Date.now();
    const payload = JSON.stringify([
      { time: now + 2_000, n: 2 },
      { time: now + 1_000, n: 1 },
    ]);
    await device.publishAsync('base/state', payload, { qos: 1 });
    const { body } = await service.admin('GET', `objects/${id}/packets?where.n=1,2&only=n,topic,payload`);
    expect(body.map(({ _id, ...packet }: { _id: string }) => packet)).toEqual([
      { n: 1 },
      { n: 2, topic: 'base/state', payload },
    ]);
  });

  test('keeps only the topic of a large message', async () => {
    const id = await createModelled();
    const device = await connect(id);
    const text = 'x'.repeat(50_000);
    await device.publishAsync('base/state', JSON.stringify({ text }), { qos: 1 });
    expect(await stateOf(id)).toEqual({ online: true, text, topic: 'base/state' });
  });

  test('refuses invalid JSON on base/state and values of another type than declared', async () => {
    const id = await createModelled();
    const device = await connect(id);
    for (const text of ['{"temperature":', '{"temperature":"hot"}'])
      await device.publishAsync('base/state', text, { qos: 1 });
    expect(await stateOf(id)).toEqual({ online: true });
  });

  test('delivers commands with any name', async () => {
    const id = await createModelled();
    const device = await connect(id);
    const got: string[][] = [];
    device.on('message', (topic, payload) => got.push([topic, payload.toString()]));
    await device.subscribeAsync(['base/commands/#', 'led_on'], { qos: 1 });
    for (const command of ['!govecs_lock', 'led-on']) {
      expect((await service.admin('POST', `objects/${id}/commands/${command}`, {})).status).toBe(200);
    }
    await until(() => got.length === 2);
    expect(got).toEqual([
      ['base/commands/!govecs_lock', expect.stringContaining('"command":"!govecs_lock"')],
      ['led_on', ''],
    ]);
    expect((await service.admin('POST', `objects/${id}/commands/other`, {})).status).toBe(404);
  });

  test('reads numbers sent as text over HTTP, and keeps no message there', async () => {
    const id = await createModelled();
    const { status, body } = await service.admin('POST', `objects/${id}/packets`, { temperature: '21.30' });
    expect([status, body.temperature, Object.hasOwn(body, 'topic')]).toEqual([200, 21.3, false]);
    const asked = await service.admin(
      'GET',
      `objects/${id}/packets?only=_ts,time,online,bed.actual,3303_0_5601,temperature`,
    );
    expect(Object.keys(asked.body[0])).toEqual(['_id', '_ts', 'time', 'online', 'temperature']);
  });
});

test('serves a device whose id contains a plus', async () => {
  const id = 'sensor+in-7';
  const { _id } = (await service.admin('GET', `objects/${await createObject(service.admin, id)}`)).body;
  const device = await connect(id);
  const topics: string[] = [];
  device.on('message', (topic) => topics.push(topic));
  await device.subscribeAsync('base/commands/#', { qos: 1 });
  await device.publishAsync('base/state/speed', '5', { qos: 1 });
  expect(await stateOf(encodeURIComponent(id))).toEqual({ online: true, speed: 5 });
  // In a path as in the address bar, where nothing escapes it.
  expect((await service.admin('POST', `objects/${id}/commands/stop`, {})).status).toBe(200);
  await until(() => topics.length === 1);
  expect((await service.admin('GET', `commands?where.object=${_id}`)).body).toMatchObject([{ command: 'stop' }]);
});
