/** The same devices with MQTT 3.1, 3.1.1 and 5: what holds for one version holds for each. */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { IClientOptions, MqttClient } from 'mqtt';
import type { Packet } from 'mqtt-packet';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import { CONNECT, connectDevice, connectRaw, createObject, PUBLISH } from '../support/mqtt-device.js';
import { until } from '../support/until.js';

const service = useService();
const clients: MqttClient[] = [];
let count = 0;

afterEach(() => {
  for (const client of clients.splice(0)) client.end(true);
});

const url = (): string => service.service.mqttUrl as string;

describe.each([
  ['3.1', { protocolVersion: 3, protocolId: 'MQIsdp' }],
  ['3.1.1', { protocolVersion: 4 }],
  ['5', { protocolVersion: 5 }],
] as [string, IClientOptions][])('MQTT %s', (version, options) => {
  const nextId = (): string => `version-${++count}`;

  async function connect(id: string, more: IClientOptions = {}): Promise<MqttClient> {
    const client = await connectDevice(url(), id, { ...options, ...more });
    clients.push(client);
    return client;
  }

  async function valuesOf(id: string): Promise<unknown[]> {
    const { body } = await service.admin('GET', `objects/${id}/packets`);
    return body.flatMap(({ n }: { n?: unknown }) => n ?? []);
  }

  test.each([0, 1, 2] as const)('stores messages with QoS %i in their order', async (qos) => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    for (const n of [1, 2, 3]) await device.publishAsync('base/state', `{"n":${n}}`, { qos });
    await device.publishAsync('base/state', '{"n":4}', { qos: 1 });
    expect(await valuesOf(id)).toEqual([1, 2, 3, 4]);
  });

  test('acknowledges what it refuses, and keeps the connection', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    for (const qos of [1, 2] as const) {
      const refused = await device.publishAsync('base/state', '{', { qos }).catch((error) => error.code);
      // Only MQTT 5 has a reason.
      expect(refused === 0x99).toBe(version === '5');
    }
    await device.publishAsync('base/state', '{"n":1}', { qos: 1 });
    expect(await valuesOf(id)).toEqual([1]);
  });

  test('refuses a wrong password', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const code = version === '5' ? 0x86 : 4;
    await expect(connect(id, { password: 'wrong' })).rejects.toMatchObject({ code });
  });

  // [MQTT-3.1.3-8] of MQTT 3.1.1; section 3.1 of MQTT 3.1. MQTT 5 has a name for it.
  test.each([true, false])('refuses a client without an id and a name, with clean session %s', async (clean) => {
    const raw = await connectRaw(url(), version === '5' ? 5 : 4);
    // By hand, since the generator refuses to write it.
    const { protocolId = 'MQTT', protocolVersion = 4 } = options;
    const text = (value: string): number[] => [0, value.length, ...Buffer.from(value)];
    const flags = clean ? 0x82 : 0x80;
    const properties = version === '5' ? [0] : [];
    const body = [...text(protocolId), protocolVersion, flags, 0, 60, ...properties, ...text(''), ...text('nobody')];
    const bytes = Buffer.from([0x10, body.length, ...body]);
    raw.socket.write(bytes);
    await raw.closed;
    const expected = version === '5' ? { reasonCode: 0x86 } : { returnCode: 2 };
    expect(raw.received).toMatchObject([{ cmd: 'connack', sessionPresent: false, ...expected }]);
  });

  test('stores a message once that is sent again, on the same or the next connection', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const isFive = options.protocolVersion === 5;
    const open = async () => {
      const raw = await connectRaw(url(), isFive ? 5 : 4);
      const kept = isFive ? { properties: { sessionExpiryInterval: 60 } } : {};
      raw.send(CONNECT(id, { protocolId: 'MQTT', ...options, ...kept, clean: false }));
      await until(() => raw.received.length === 1, 'CONNACK');
      return raw;
    };
    const first = await open();
    first.send(PUBLISH('base/state', '{"n":1}'), PUBLISH('base/state', '{"n":1}', { dup: true }));
    await until(() => first.received.length === 3, 'two acknowledgements');
    first.socket.destroy();
    await first.closed;
    const second = await open();
    // Not marked, but of a session that goes on.
    second.send(PUBLISH('base/state', '{"n":1}'), PUBLISH('base/state', '{"n":2}', { messageId: 2 }));
    await until(() => second.received.length === 3, 'two acknowledgements');
    second.socket.destroy();
    expect(await valuesOf(id)).toEqual([1, 2]);
  });

  test('replaces an older connection of any version', async () => {
    const id = nextId();
    const objectId = await createObject(service.admin, id);
    const others: IClientOptions[] = [{ protocolVersion: 4 }, { protocolVersion: 5 }];
    for (const other of others) {
      const older = await connectDevice(url(), id, other);
      clients.push(older);
      const newer = await connect(objectId);
      await until(() => !older.connected, 'the older connection to end');
      expect(newer.connected).toBe(true);
    }
  });

  test('stores a will when the connection breaks, and not after DISCONNECT', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const will = { topic: 'base/state', payload: Buffer.from('{"n":"fallen"}'), qos: 1 as const, retain: false };
    const leaving = await connect(id, { will });
    await leaving.endAsync();
    const falling = await connect(id, { will });
    falling.stream.destroy();
    await until(async () => (await valuesOf(id)).length > 0, 'the will');
    expect(await valuesOf(id)).toEqual(['fallen']);
  });

  describe('a packet with many filters', () => {
    const most = LIMITS.mqttFiltersPerPacket;
    const subscribe = (filters: number, topic = 'a'): Packet => ({
      cmd: 'subscribe',
      messageId: 1,
      subscriptions: Array.from({ length: filters }, () => ({ topic, qos: 0 as const })),
    });
    const unsubscribe = (filters: number): Packet => ({
      cmd: 'unsubscribe',
      messageId: 1,
      unsubscriptions: Array(filters).fill('a'),
    });

    async function answersTo(packet: Packet) {
      const id = nextId();
      await createObject(service.admin, id);
      const raw = await connectRaw(url(), version === '5' ? 5 : 4);
      raw.send(CONNECT(id, { protocolId: 'MQTT', ...options }), packet);
      await until(() => raw.received.length === 2 || raw.isClosed(), 'an answer');
      raw.socket.destroy();
      return { answers: raw.received.slice(1), id };
    }

    test.each([
      ['SUBSCRIBE', subscribe(most), 'suback'],
      ['SUBSCRIBE with long filters', subscribe(most, 'a/'.repeat(300)), 'suback'],
      ['UNSUBSCRIBE', unsubscribe(most), 'unsuback'],
    ])('is answered: %s', async (_name, packet, cmd) => {
      const { answers } = await answersTo(packet);
      expect(answers).toMatchObject([{ cmd }]);
    });

    test.each([
      ['SUBSCRIBE', subscribe(most + 1)],
      ['SUBSCRIBE with 16,000', subscribe(16_000)],
      ['UNSUBSCRIBE', unsubscribe(most + 1)],
      ['UNSUBSCRIBE with 20,000', unsubscribe(20_000)],
    ])('ends the connection, if there are more than permitted: %s', async (_name, packet) => {
      const { answers, id } = await answersTo(packet);
      // Only MQTT 5 has a word for it.
      expect(answers).toMatchObject(version === '5' ? [{ cmd: 'disconnect', reasonCode: 0x97 }] : []);
      expect((await connect(id)).connected).toBe(true);
    });
  });

  test.each([
    ['levels', `base/state/${'/'.repeat(30_000)}`],
    ['members', `base/state/${'a.'.repeat(20_000)}a`],
    ['characters', `base/state/${'x'.repeat(60_000)}`],
  ])('acknowledges a message on a topic of too many %s, and says so', async (_name, topic) => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    const code = await device.publishAsync(topic, '1', { qos: 1 }).catch((error) => error.code);
    expect(code === 0x90).toBe(version === '5');
    const { body } = await service.admin('GET', `objects/${id}/refused`);
    expect(body).toMatchObject([{ reason: expect.stringContaining('at most 1024 are permitted') }]);
  });

  test('answers SUBSCRIBE and UNSUBSCRIBE for each filter', async () => {
    const id = nextId();
    await createObject(service.admin, id);
    const device = await connect(id);
    const granted = await device.subscribeAsync({ 'base/commands/#': { qos: 2 }, 'base/commands/+': { qos: 0 } });
    expect(granted.map(({ qos }) => qos)).toEqual([1, 0]);
    await device.unsubscribeAsync(['base/commands/#', 'base/commands/+']);
  });
});

test('lets a client of MQTT 5 use topic aliases by itself', async () => {
  await createObject(service.admin, 'aliases');
  const client = await connectDevice(url(), 'aliases', { protocolVersion: 5, autoUseTopicAlias: true });
  clients.push(client);
  for (let n = 0; n < 60; n++) {
    const topic = `base/state/p${n % 25}`;
    await client.publishAsync(topic, `${n}`, { qos: 1 });
  }
  const { body } = await service.admin('GET', 'objects/aliases/packets');
  const stored = Object.assign({}, ...body);
  expect(stored).toMatchObject({ p0: 50, p9: 59, p10: 35, p24: 49 });
});
