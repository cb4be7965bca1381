/** Devices over MQTT: the meaning of topics, and storage and events of acknowledged messages. */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { IClientOptions, MqttClient } from 'mqtt';
import { useService } from '../support/fixture.js';
import { connectDevice, createObject } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const clients: MqttClient[] = [];
let count = 0;

afterEach(() => {
  for (const client of clients.splice(0)) client.end(true);
});

const url = (): string => service.service.mqttUrl as string;
const nextId = (): string => `truck-${++count}`;

async function connect(id: string, options: IClientOptions = {}): Promise<MqttClient> {
  const client = await connectDevice(url(), id, options);
  clients.push(client);
  return client;
}

// biome-ignore lint/suspicious/noExplicitAny: packets of every shape
async function packetsOf(id: string): Promise<any[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  const shown = body.map(({ _id, _ts, _oid, _gid, id: _own, time: _time, ...rest }: Record<string, unknown>) => rest);
  // Those that only say whether the device is there are another test's.
  return shown.filter((packet: object) => Object.keys(packet).length > 1);
}

describe('messages', () => {
  test('stores a JSON object on base/state before the acknowledgement and publishes it', async () => {
    const id = nextId();
    const objectId = await createObject(service.admin, id);
    const listener = await service.listen(await service.tokenOf('admin', 'correct horse battery'));
    const device = await connect(id);
    const time = Date.now() + 60_000;
    await device.publishAsync('base/state', JSON.stringify({ time, speed: 41 }), { qos: 1 });
    const { body } = await service.admin('GET', `objects/${id}`);
    expect(body.state).toMatchObject({ _oid: objectId, id, time, online: true, speed: 41 });
    await service.settled();
    const events = listener.take().filter(({ payload }) => payload.speed === 41);
    expect(events.map(({ name }) => name)).toEqual(['object-packet']);
    listener.close();
  });

  test.each([
    ['41.5', 41.5],
    ['true', true],
    ['"text"', 'text'],
    ['plain text', 'plain text'],
    ['{"a":[1]}', { a: [1] }],
  ])('stores the value on base/state/<parameter>: %s', async (payload, speed) => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    await device.publishAsync('base/state/speed', payload, { qos: 1 });
    expect(await packetsOf(id)).toEqual([{ online: true, speed }]);
  });

  test.each([0, 1, 2] as const)('stores messages with QoS %i', async (qos) => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    for (const speed of [1, 2, 3]) await device.publishAsync('base/state', JSON.stringify({ speed }), { qos });
    // What comes later on a connection is stored later: this one is acknowledged after them.
    await device.publishAsync('base/state', '{"speed":4}', { qos: 1 });
    expect(await packetsOf(id)).toEqual([1, 2, 3, 4].map((speed) => ({ online: true, speed })));
  });

  test('stores a list of packets completely and in order', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    await device.publishAsync('base/state', '[{"speed":1},{"speed":2,"online":false}]', { qos: 1 });
    expect(await packetsOf(id)).toEqual([
      { online: true, speed: 1 },
      { online: false, speed: 2 },
    ]);
  });

  test('stores hundreds of concurrent messages in the order of each device', async () => {
    const ids = [nextId(), nextId(), nextId()];
    const devices = [];
    for (const id of ids) {
      await createObject(service.admin, id);
      devices.push(await connect(id));
    }
    const numbers = Array.from({ length: 300 }, (_, at) => at);
    await Promise.all(
      devices.flatMap((device) => numbers.map((at) => device.publishAsync('base/state', `{"at":${at}}`, { qos: 1 }))),
    );
    for (const id of ids) expect(await packetsOf(id)).toEqual(numbers.map((at) => ({ online: true, at })));
  });
});

describe("a model's references", () => {
  const DATA = {
    id: 'root',
    type: 'subsystem',
    children: [
      { id: 'power', type: 'argument', dataType: 'boolean', reference: 'stat/POWER' },
      { id: 'code', type: 'argument', dataType: 'string', reference: 'stat/CODE' },
      { id: 'temperature', type: 'argument', dataType: 'number', reference: 'tele/SENSOR#AM2301.Temperature' },
      { id: 'second', type: 'argument', dataType: 'number', reference: 'tele/SENSOR#list.1' },
    ],
  };

  async function createModelled(): Promise<{ id: string; modelId: string }> {
    const id = nextId();
    const { body } = await service.admin('POST', 'models', { name: id, data: DATA });
    await createObject(service.admin, id, { model: body._id });
    return { id, modelId: body._id };
  }

  test('map a topic, and a path in its JSON, to parameters', async () => {
    const { id } = await createModelled();
    const device = await connect(id);
    const publish = (topic: string, payload: string) => device.publishAsync(topic, payload, { qos: 1 });
    await publish('stat/POWER', 'ON');
    await publish('stat/CODE', '007');
    await publish('tele/SENSOR', '{"Time":"x","AM2301":{"Temperature":21.5,"Humidity":40},"list":[1,"2.5"]}');
    await publish('tele/SENSOR', '{"AM2301":{"Temperature":null}}');
    expect(await packetsOf(id)).toEqual([
      { online: true, power: true },
      { online: true, code: '007' },
      { online: true, temperature: 21.5, second: 2.5 },
      { online: true, temperature: null },
    ]);
  });

  test('apply changes of the model to open connections', async () => {
    const { id, modelId } = await createModelled();
    const device = await connect(id);
    const children = [{ id: 'power', type: 'argument', dataType: 'boolean', reference: 'stat/OTHER' }];
    await service.admin('PATCH', `models/${modelId}`, { data: { id: 'root', type: 'subsystem', children } });
    await service.settled();
    await until(async () => {
      await device.publishAsync('stat/OTHER', 'OFF', { qos: 1 });
      return (await packetsOf(id)).length > 0;
    });
    expect((await packetsOf(id))[0]).toEqual({ online: true, power: false });
  });
});

describe('an invalid message', () => {
  const refused: [topic: string, payload: string, why: string][] = [
    ['base/state', '{"speed":', 'not valid JSON'],
    ['base/state', '41', 'expected a JSON object'],
    ['base/state', '{"__proto__":{"a":1}}', '__proto__'],
    ['base/state', '{"$set":1}', '$set'],
    ['base/state', '{"time":"never"}', 'time'],
    ['base/state', '{"time":20261123}', 'time'],
    ['base/state/', '1', 'not a valid parameter name'],
    ['base/state/_id', '1', 'not a valid parameter name'],
    ['base/state/time', '1', 'not a valid parameter name'],
    ['base/state/a/b', '1', 'topic'],
    ['base/states', '{}', 'topic'],
    ['BASE/STATE', '{}', 'topic'],
    ['/base/state', '{}', 'topic'],
    ['objects/truck-1/base/state', '{}', 'topic'],
    ['$SYS/x', '1', 'topic'],
    ['base/commands/x', '1', 'topic'],
    ['base/commands/ffffffffffffffffffffffff/result', '{"status":"done"}', 'Not Found'],
    ['base/commands/ffffffffffffffffffffffff/result', '{"status":"well"}', 'status'],
  ];

  test.each(refused)(
    'is acknowledged, reported and not stored on %s with %s, and keeps the connection',
    async (topic, payload, why) => {
      const id = nextId();
      const objectId = await createObject(service.admin, id);
      const device = await connect(id);
      await device.publishAsync(topic, payload, { qos: 1 });
      await device.publishAsync(topic, payload, { qos: 0 });
      await device.publishAsync('base/state', '{"speed":1}', { qos: 1 });
      expect(await packetsOf(id)).toEqual([{ online: true, speed: 1 }]);
      const logged = service.logLines.filter((line) => line.includes('message rejected') && line.includes(objectId));
      // Once a minute.
      expect(logged).toHaveLength(1);
      expect(logged[0]).toContain(why);
      await until(async () => {
        const { body } = await service.admin('GET', `audit?where.entity=${objectId}`);
        return body.length === 1 && body[0].action === 'message refused' && body[0].fields[0].includes(why);
      });
    },
  );

  test('is not stored if it is not UTF-8', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    await device.publishAsync('base/state/name', Buffer.from([0xff, 0xfe]), { qos: 1 });
    expect(await packetsOf(id)).toEqual([]);
  });
});

describe('messages to other devices', () => {
  test('are not forwarded, neither published nor retained messages nor wills', async () => {
    const id = nextId();
    const other = nextId();
    await createObject(service.admin, id);
    await createObject(service.admin, other);
    const listening = await connect(other, { clean: false });
    const received: string[] = [];
    listening.on('message', (topic) => received.push(topic));
    await listening.subscribeAsync('base/commands/#', { qos: 1 });
    const will = { topic: 'base/state', payload: Buffer.from('{"fallen":true}'), qos: 1 as const, retain: true };
    const device = await connect(id, { will });
    for (const topic of ['base/commands/stop', 'base/commands/x/result', 'base/state/a']) {
      await device.publishAsync(topic, '{"status":"done"}', { qos: 1, retain: true });
    }
    device.stream.destroy();
    await until(async () => (await packetsOf(id)).some(({ fallen }) => fallen));
    await listening.publishAsync('base/state', '{"mine":1}', { qos: 1, retain: true });
    await listening.endAsync();
    // Nor what waited for a session that is resumed.
    const again = await connect(other, { clean: false });
    again.on('message', (topic) => received.push(topic));
    await again.subscribeAsync('base/commands/#', { qos: 1 });
    await again.publishAsync('base/state', '{"mine":2}', { qos: 1 });
    expect(received).toEqual([]);
    expect(await packetsOf(other)).toEqual([
      { online: true, mine: 1 },
      { online: true, mine: 2 },
    ]);
  });

  test('are not stored for a will on a topic of another device', async () => {
    const id = nextId();
    const objectId = await createObject(service.admin, id);
    const device = await connect(id, { will: { topic: 'objects/x/base/state', payload: Buffer.from('{}'), qos: 1 } });
    device.stream.destroy();
    await until(() => service.logLines.some((line) => line.includes('message rejected') && line.includes(objectId)));
    expect(await packetsOf(id)).toEqual([]);
  });
});
