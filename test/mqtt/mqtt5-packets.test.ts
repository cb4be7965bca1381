/**
 * Packets of MQTT 5, byte by byte where it matters: what each of them is answered, and with which reason a connection ends.
 * Long because it has a table for each kind of packet.
 */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { IConnackPacket, Packet } from 'mqtt-packet';
import { LIMITS } from '../../src/core/limits.js';
import { startTestService, useService } from '../support/fixture.js';
import { bytesOf5, CONNECT5, connectRaw, createObject, PUBLISH, type RawDevice } from '../support/mqtt-device.js';
import { fc } from '../support/runs.js';
import { until } from '../support/until.js';

const service = useService();
const raws: RawDevice[] = [];
let count = 0;

afterEach(() => {
  for (const raw of raws.splice(0)) raw.socket.destroy();
});

const open = async (url = service.service.mqttUrl as string): Promise<RawDevice> => {
  const raw = await connectRaw(url, 5);
  raws.push(raw);
  return raw;
};

async function create(fields: object = {}): Promise<string> {
  const id = `five-${++count}`;
  await createObject(service.admin, id, fields);
  return id;
}

/** A connection of a new object's device. */
async function openDevice(properties: object = {}, more: object = {}): Promise<RawDevice & { id: string }> {
  const id = await create();
  const raw = await open();
  raw.send(CONNECT5(id, properties, more));
  await until(() => raw.received.length > 0, 'CONNACK');
  expect(raw.received[0]).toMatchObject({ cmd: 'connack', reasonCode: 0, sessionPresent: false });
  return { ...raw, id };
}

async function answerTo(raw: RawDevice, ...packets: Packet[]): Promise<Packet> {
  const before = raw.received.length;
  raw.send(...packets);
  await until(() => raw.received.length > before || raw.isClosed(), 'an answer');
  return raw.received[before] as Packet;
}

async function valuesOf(id: string): Promise<unknown[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  return body.flatMap(({ n }: { n?: number }) => n ?? []);
}

/** A CONNECT from its parts; the client id is empty. */
function connectBytes(flags: number, properties: readonly number[], payload: readonly number[] = [0, 0]): Buffer {
  const body = [0, 4, 0x4d, 0x51, 0x54, 0x54, 5, flags, 0, 60, properties.length, ...properties, ...payload];
  return Buffer.from([0x10, body.length, ...body]);
}

describe('CONNECT', () => {
  test('is answered with what the service can and cannot do', async () => {
    const raw = await openDevice();
    expect((raw.received[0] as IConnackPacket).properties).toEqual({
      receiveMaximum: LIMITS.mqttStoringPerDevice,
      retainAvailable: false,
      maximumPacketSize: LIMITS.mqttPacketBytes + 4,
      topicAliasMaximum: LIMITS.mqttTopicAliases,
      wildcardSubscriptionAvailable: true,
      subscriptionIdentifiersAvailable: false,
      sharedSubscriptionAvailable: false,
    });
  });

  test.each<[string, object, object, object]>([
    ['a session that would outlast its connection', { sessionExpiryInterval: 60 }, {}, { sessionExpiryInterval: 0 }],
    ['no keep-alive', {}, { keepalive: 0 }, { serverKeepAlive: LIMITS.mqttKeepAliveMaxS }],
    ['a very long keep-alive', {}, { keepalive: 60_000 }, { serverKeepAlive: LIMITS.mqttKeepAliveMaxS }],
  ])('is answered with what holds instead: %s', async (_name, properties, more, expected) => {
    const raw = await openDevice(properties, more);
    expect((raw.received[0] as IConnackPacket).properties).toMatchObject(expected);
  });

  test('takes the user name of a device without a client id, and tells it so', async () => {
    const id = await create({ config: { auth: { password: 'a key of the machine' } } });
    const raw = await open();
    const connack = await answerTo(raw, CONNECT5('', {}, { username: id }));
    expect(connack).toMatchObject({ reasonCode: 0, properties: { assignedClientIdentifier: id } });
    expect(await answerTo(raw, PUBLISH('base/state', '{"n":1}'))).toMatchObject({ cmd: 'puback', reasonCode: 0 });
    expect(await valuesOf(id)).toEqual([1]);
  });

  test.each<[string, (id: string) => Packet, number]>([
    ['a wrong password', (id) => CONNECT5(id, {}, { password: Buffer.from('wrong') }), 0x86],
    ['an unknown device', (id) => CONNECT5(`${id}-x`), 0x86],
    ['no client id, and a user name of nothing', () => CONNECT5(''), 0x86],
    ['a client id that is too long', () => CONNECT5('x'.repeat(LIMITS.idCharacters + 1)), 0x85],
    ['an authentication method', (id) => CONNECT5(id, { authenticationMethod: 'SCRAM-SHA-256' }), 0x8c],
    ['authentication data alone', (id) => CONNECT5(id, { authenticationData: Buffer.from('x') }), 0x82],
    [
      'a retained will',
      (id) => CONNECT5(id, {}, { will: { topic: 'base/state', payload: '{}', qos: 1, retain: true } }),
      0x9a,
    ],
    [
      'a will on a topic with a wildcard',
      (id) => CONNECT5(id, {}, { will: { topic: 'base/#', payload: '{}', qos: 1, retain: false } }),
      0x90,
    ],
  ])('is refused with %s', async (_name, connect, reasonCode) => {
    const raw = await open();
    raw.send(connect(await create()));
    await raw.closed;
    expect(raw.received).toMatchObject([{ cmd: 'connack', sessionPresent: false, reasonCode }]);
  });

  test.each<[string, Buffer, number]>([
    ['Receive Maximum 0', connectBytes(2, [0x21, 0, 0]), 0x82],
    ['Maximum Packet Size 0', connectBytes(2, [0x27, 0, 0, 0, 0]), 0x82],
    ['a property twice', connectBytes(2, [0x22, 0, 1, 0x22, 0, 2]), 0x82],
    ['a flag that is 2', connectBytes(2, [0x17, 2]), 0x82],
    ['a property of PUBLISH', connectBytes(2, [0x23, 0, 1]), 0x81],
    ['an unknown property', connectBytes(2, [0x7f, 0]), 0x81],
    ['properties longer than the packet', connectBytes(2, [0x21, 0, 1], []), 0x81],
    ['a property that is cut off', connectBytes(2, [0x11, 0, 0]), 0x81],
    ['a will with QoS 3', connectBytes(0x1e, [], [0, 0, 0, 0, 1, 0x61, 0, 0]), 0x81],
    ['a reserved flag', connectBytes(3, []), 0x81],
    ['bytes behind the client id', connectBytes(2, [], [0, 0, 0]), 0x81],
    ['bytes behind the password', connectBytes(0xc2, [], [0, 0, 0, 1, 0x61, 0, 1, 0x61, 0]), 0x81],
    ['bytes behind the will', connectBytes(6, [], [0, 0, 0, 0, 1, 0x61, 0, 0, 0]), 0x81],
    ['a user name longer than the packet', connectBytes(0x82, [], [0, 0, 0xff, 0xff, 0x61]), 0x81],
  ])('is refused as malformed: %s', async (_name, bytes, reasonCode) => {
    const raw = await open();
    raw.socket.write(bytes);
    await raw.closed;
    expect(raw.received).toMatchObject([{ cmd: 'connack', reasonCode }]);
  });
});

describe('PUBLISH', () => {
  test.each<[string, Packet, object]>([
    ['a message that is stored', PUBLISH('base/state', '{"n":1}'), { cmd: 'puback', reasonCode: 0 }],
    ['the same with QoS 2', PUBLISH('base/state', '{"n":1}', { qos: 2 }), { cmd: 'pubrec', reasonCode: 0 }],
    ['a payload that is no JSON', PUBLISH('base/state', '{'), { cmd: 'puback', reasonCode: 0x99 }],
    ['the same with QoS 2', PUBLISH('base/state', '{', { qos: 2 }), { cmd: 'pubrec', reasonCode: 0x99 }],
    ['a topic of nothing', PUBLISH('elsewhere', '{}'), { cmd: 'puback', reasonCode: 0x90 }],
    ['a parameter that cannot be', PUBLISH('base/state/_id', '1'), { cmd: 'puback', reasonCode: 0x90 }],
    [
      'a result of no command',
      PUBLISH('base/commands/ffffffffffffffffffffffff/result', '{"status":"done"}'),
      { cmd: 'puback', reasonCode: 0x83 },
    ],
  ])('is acknowledged with a reason: %s', async (_name, message, expected) => {
    const raw = await openDevice();
    const answer = await answerTo(raw, message);
    expect(answer).toMatchObject({ ...expected, messageId: 1 });
    const { reasonCode, properties } = answer as Packet & { cmd: 'puback' };
    expect(properties?.reasonString === undefined).toBe(reasonCode === 0);
    expect(await answerTo(raw, PUBLISH('base/state', '{"n":2}', { messageId: 2 }))).toMatchObject({ reasonCode: 0 });
    expect(await valuesOf(raw.id)).toEqual(reasonCode === 0 ? [1, 2] : [2]);
  });

  test('is acknowledged without the reason as text if the client does not want it, or has no room for it', async () => {
    for (const properties of [{ requestProblemInformation: false }, { maximumPacketSize: 64 }]) {
      const raw = await openDevice(properties);
      const answer = await answerTo(raw, PUBLISH('base/state', '{"speed":"x","__proto__":1,"time":"never and never"}'));
      expect(answer).toMatchObject({ cmd: 'puback', reasonCode: 0x99 });
      expect(answer).not.toHaveProperty('properties');
    }
  });

  test('is acknowledged in the order in which it arrived', async () => {
    const raw = await openDevice();
    const kinds = [{ dup: true }, { qos: 2 }, {}, { dup: true, qos: 2 }];
    const messages = Array.from({ length: 60 }, (_, at) =>
      PUBLISH('base/state', at % 7 === 3 ? 'no JSON' : `{"n":${at}}`, { messageId: at + 1, ...kinds[at % 4] }),
    );
    raw.send(...messages);
    await until(() => raw.received.length === messages.length + 1, 'every acknowledgement');
    expect(raw.received.slice(1).map(({ messageId }) => messageId)).toEqual(messages.map(({ messageId }) => messageId));
  });

  test('uses topic aliases, which a later topic replaces', async () => {
    const raw = await openDevice();
    const alias = (topic: string, n: number, topicAlias: number) =>
      PUBLISH(topic, `${n}`, { messageId: n, properties: { topicAlias } });
    raw.send(alias('base/state/n', 1, 1), alias('', 2, 1), alias('base/state/m', 3, LIMITS.mqttTopicAliases));
    raw.send(alias('base/state/m', 4, 1), alias('', 5, 1), alias('', 6, LIMITS.mqttTopicAliases));
    await until(() => raw.received.length === 7, 'every acknowledgement');
    expect(await valuesOf(raw.id)).toEqual([1, 2]);
    const { body } = await service.admin('GET', `objects/${raw.id}/packets`);
    expect(body.flatMap(({ m }: { m?: number }) => m ?? [])).toEqual([3, 4, 5, 6]);
  });

  test('forgets topic aliases with the connection', async () => {
    const first = await openDevice();
    await answerTo(first, PUBLISH('base/state/n', '1', { properties: { topicAlias: 1 } }));
    const second = await open();
    second.send(CONNECT5(first.id), PUBLISH('', '2', { properties: { topicAlias: 1 } }));
    await second.closed;
    expect(second.received.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x82 });
  });

  test('stores a message of QoS 2 once that comes again before it is released', async () => {
    const raw = await openDevice();
    const message = PUBLISH('base/state', '{"n":1}', { qos: 2 });
    for (const cmd of ['pubrec', 'pubrec']) expect(await answerTo(raw, message)).toMatchObject({ cmd, reasonCode: 0 });
    expect(await answerTo(raw, { cmd: 'pubrel', messageId: 1 })).toMatchObject({ cmd: 'pubcomp', reasonCode: 0 });
    expect(await answerTo(raw, { cmd: 'pubrel', messageId: 1 })).toMatchObject({ cmd: 'pubcomp', reasonCode: 0x92 });
    expect(await valuesOf(raw.id)).toEqual([1]);
    // The identifier is free again.
    await answerTo(raw, message);
    expect(await valuesOf(raw.id)).toEqual([1, 1]);
  });

  test('stores a retained message, and does not retain it', async () => {
    const raw = await openDevice();
    expect(await answerTo(raw, PUBLISH('base/state', '{"n":1}', { retain: true }))).toMatchObject({ reasonCode: 0 });
    expect(await valuesOf(raw.id)).toEqual([1]);
  });

  test('acknowledges and reports a message of more than the maximum, and ends the connection then', async () => {
    const raw = await openDevice();
    raw.send(
      PUBLISH('base/state', '{"n":1}', { messageId: 1 }),
      PUBLISH('base/state', Buffer.alloc(LIMITS.mqttPacketBytes, 0x61), { messageId: 2 }),
    );
    await raw.closed;
    expect(raw.received.slice(1)).toMatchObject([
      { cmd: 'puback', messageId: 1, reasonCode: 0 },
      { cmd: 'puback', messageId: 2, reasonCode: 0x97 },
      { cmd: 'disconnect', reasonCode: 0x95 },
    ]);
    const { body } = await service.admin('GET', `objects/${raw.id}/refused`);
    expect(body).toMatchObject([{ topic: 'base/state', reason: expect.stringContaining('at most') }]);
  });

  test('accepts a message of exactly the maximum', async () => {
    const raw = await openDevice();
    const { maximumPacketSize } = (raw.received[0] as IConnackPacket).properties as { maximumPacketSize: number };
    const around = bytesOf5(PUBLISH('base/state/text', 'x'.repeat(60_000))).length - 60_000;
    const largest = PUBLISH('base/state/text', 'x'.repeat(maximumPacketSize - around));
    expect(bytesOf5(largest)).toHaveLength(maximumPacketSize);
    // Its value is too long for a packet, which is another reason.
    expect(await answerTo(raw, largest)).toMatchObject({ cmd: 'puback' });
    expect(raw.isClosed()).toBe(false);
  });

  test('ends a connection with more messages of QoS 2 than Receive Maximum', async () => {
    const raw = await openDevice();
    for (let at = 1; at <= LIMITS.mqttStoringPerDevice + 1; at++) {
      raw.send(PUBLISH('base/state', `{"n":${at}}`, { qos: 2, messageId: at }));
    }
    await raw.closed;
    expect(raw.received.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x93 });
  });
});

describe('SUBSCRIBE and UNSUBSCRIBE', () => {
  test.each<[string, object, number]>([
    ['base/commands/#', {}, 1],
    ['base/commands/+', {}, 1],
    ['#', {}, 0x87],
    ['base/state', {}, 0x87],
    ['$share/group/base/commands/#', {}, 0x9e],
    ['base/commands/#/x', {}, 0x8f],
    ['base/commands/a#', {}, 0x8f],
    ['base/commands/a+', {}, 0x8f],
    ['', {}, 0x8f],
    ['base/commands/#', { subscriptionIdentifier: 7 }, 0xa1],
  ])('are answered with a reason: %s %j', async (topic, properties, code) => {
    const raw = await openDevice();
    const subscriptions = [{ topic, qos: 2 as const }];
    const suback = await answerTo(raw, { cmd: 'subscribe', messageId: 5, subscriptions, properties });
    expect(suback).toMatchObject({ cmd: 'suback', messageId: 5, granted: [code] });
    const unsuback = await answerTo(raw, { cmd: 'unsubscribe', messageId: 6, unsubscriptions: [topic] });
    const expected = code === 1 ? 0 : code === 0x8f ? 0x8f : 0x11;
    expect(unsuback).toMatchObject({ cmd: 'unsuback', messageId: 6, granted: [expected] });
  });

  test('are answered for each filter of many, of which twenty are granted', async () => {
    const raw = await openDevice();
    const topics = Array.from({ length: LIMITS.mqttSubscriptions + 1 }, (_, at) => `base/commands/c${at}`);
    const subscriptions = topics.map((topic) => ({ topic, qos: 1 as const }));
    const suback = await answerTo(raw, { cmd: 'subscribe', messageId: 5, subscriptions });
    expect(suback).toMatchObject({ granted: [...Array(LIMITS.mqttSubscriptions).fill(1), 0x97] });
  });
});

describe('DISCONNECT of the service', () => {
  const ended: [string, Buffer, number][] = [
    ['a second CONNECT', bytesOf5(CONNECT5('x')), 0x82],
    ['a packet that only servers send', Buffer.from([0xd0, 0]), 0x82],
    ['type 0', Buffer.from([0x00, 0]), 0x81],
    ['PINGREQ with a body', Buffer.from([0xc0, 1, 0]), 0x81],
    ['flags that are not 0', Buffer.from([0xc1, 0]), 0x81],
    ['a length of five bytes', Buffer.from([0x30, 0xff, 0xff, 0xff, 0xff, 1]), 0x81],
    ['a packet that is too large', Buffer.from([0x82, 0xff, 0xff, 0x7f]), 0x95],
    ['a message without a topic', Buffer.from([0x30, 3, 0, 0, 0]), 0x82],
    ['a wildcard in a topic', Buffer.from([0x30, 4, 0, 1, 0x23, 0]), 0x90],
    ['QoS 3', Buffer.from([0x36, 6, 0, 1, 0x61, 0, 1, 0]), 0x81],
    ['the identifier 0', Buffer.from([0x32, 6, 0, 1, 0x61, 0, 0, 0]), 0x82],
    ['an identifier that is cut off', Buffer.from([0x32, 4, 0, 1, 0x61, 0]), 0x81],
    ['a topic longer than its packet', Buffer.from([0x30, 4, 0xff, 0xff, 0x61, 0]), 0x81],
    ['topic alias 0', Buffer.from([0x30, 7, 0, 1, 0x61, 3, 0x23, 0, 0]), 0x94],
    ['a topic alias that is too large', Buffer.from([0x30, 7, 0, 1, 0x61, 3, 0x23, 0, 21]), 0x94],
    ['a topic alias of nothing', Buffer.from([0x30, 6, 0, 0, 3, 0x23, 0, 1]), 0x82],
    ['a subscription identifier in PUBLISH', Buffer.from([0x30, 6, 0, 1, 0x61, 2, 0x0b, 1]), 0x81],
    ['a response topic with a wildcard', Buffer.from([0x30, 8, 0, 1, 0x61, 4, 8, 0, 1, 0x23]), 0x90],
    ['a property without its value', Buffer.from([0x30, 5, 0, 1, 0x61, 1, 0x01]), 0x81],
    ['properties without a length', Buffer.from([0x30, 4, 0, 1, 0x61, 0x80]), 0x81],
    ['SUBSCRIBE without filters', Buffer.from([0x82, 3, 0, 1, 0]), 0x82],
    ['SUBSCRIBE with the identifier 0', Buffer.from([0x82, 7, 0, 0, 0, 0, 1, 0x61, 0]), 0x82],
    ['SUBSCRIBE with subscription identifier 0', Buffer.from([0x82, 9, 0, 1, 2, 0x0b, 0, 0, 1, 0x61, 0]), 0x82],
    ['SUBSCRIBE with QoS 3', Buffer.from([0x82, 7, 0, 1, 0, 0, 1, 0x61, 3]), 0x81],
    ['SUBSCRIBE with reserved bits', Buffer.from([0x82, 7, 0, 1, 0, 0, 1, 0x61, 0x40]), 0x81],
    ['UNSUBSCRIBE without filters', Buffer.from([0xa2, 3, 0, 1, 0]), 0x82],
    ['PUBACK without an identifier', Buffer.from([0x40, 0]), 0x81],
    ['PUBACK with an unknown reason', Buffer.from([0x40, 3, 0, 1, 0x42]), 0x81],
    ['PUBACK with bytes behind its properties', Buffer.from([0x40, 5, 0, 1, 0, 0, 9]), 0x81],
    ['DISCONNECT with an unknown reason', Buffer.from([0xe0, 1, 0x42]), 0x81],
  ];

  test.each(ended)('says why the connection ends: %s', async (_name, bytes, reasonCode) => {
    const raw = await openDevice();
    raw.socket.write(bytes);
    await raw.closed;
    expect(raw.received.slice(1)).toMatchObject([{ cmd: 'disconnect', reasonCode }]);
    expect(await valuesOf(raw.id)).toEqual([]);
  });

  test.each([
    ['without a method', Buffer.from([0xf0, 0])],
    ['with a method', bytesOf5({ cmd: 'auth', reasonCode: 0x19, properties: { authenticationMethod: 'x' } })],
  ])('refuses AUTH %s', async (_name, bytes) => {
    const raw = await openDevice();
    const answer: Buffer[] = [];
    raw.socket.on('data', (some) => answer.push(some));
    raw.socket.write(bytes);
    await raw.closed;
    // The parser of the test does not know this reason.
    expect([...Buffer.concat(answer)].slice(0, 3)).toEqual([0xe0, expect.any(Number), 0x8c]);
  });

  test('says that a newer connection took over', async () => {
    const raw = await openDevice();
    const second = await open();
    expect(await answerTo(second, CONNECT5(raw.id))).toMatchObject({ cmd: 'connack', reasonCode: 0 });
    await raw.closed;
    expect(raw.received.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x8e });
    expect(await answerTo(second, { cmd: 'pingreq' })).toMatchObject({ cmd: 'pingresp' });
  });

  test('says that the device may not connect any more', async () => {
    const raw = await openDevice();
    await service.admin('PATCH', `objects/${raw.id}`, { active: false });
    await raw.closed;
    expect(raw.received.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x87 });
  });

  test('says that the device was silent for too long', async () => {
    const raw = await openDevice({}, { keepalive: 1 });
    await raw.closed;
    expect(raw.received.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x8d });
  });

  test('says that topic aliases stand for too long topics', async () => {
    const raw = await openDevice();
    const topic = `base/state/${'x'.repeat(LIMITS.mqttTopicAliasCharacters)}`;
    raw.send(PUBLISH(topic, '1', { properties: { topicAlias: 1 } }));
    await raw.closed;
    expect(raw.received.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x97 });
  });

  test('says that the service stops', async () => {
    const other = await startTestService();
    await createObject(other.admin, 'five');
    const raw = await open(other.service.mqttUrl as string);
    raw.send(CONNECT5('five'));
    await until(() => raw.received.length > 0, 'CONNACK');
    await other.stop();
    await raw.closed;
    expect(raw.received.at(-1)).toMatchObject({ cmd: 'disconnect', reasonCode: 0x8b });
  });
});

describe('a will', () => {
  const will = { topic: 'base/state', payload: Buffer.from('{"n":9}'), qos: 1, retain: false };

  test.each<[string, (raw: RawDevice) => unknown, number[]]>([
    ['a connection that breaks', (raw) => raw.socket.destroy(), [9]],
    ['DISCONNECT with the will', (raw) => raw.send({ cmd: 'disconnect', reasonCode: 4 }), [9]],
    ['DISCONNECT', (raw) => raw.send({ cmd: 'disconnect', reasonCode: 0 }), []],
    ['an error of the protocol', (raw) => raw.socket.write(Buffer.from([0xd0, 0])), [9]],
  ])('is stored, or not, after %s', async (_name, end, expected) => {
    const raw = await openDevice({}, { will });
    end(raw);
    await raw.closed;
    const isOffline = async () => (await service.admin('GET', `objects/${raw.id}`)).body.state.online === false;
    await until(isOffline, 'the device to be offline');
    expect(await valuesOf(raw.id)).toEqual(expected);
  });

  test('may have the properties of a will', async () => {
    const properties = { willDelayInterval: 5, payloadFormatIndicator: true, contentType: 'application/json' };
    const raw = await openDevice({}, { will: { ...will, properties } });
    raw.socket.destroy();
    await until(async () => (await valuesOf(raw.id)).length > 0, 'the will to be stored');
  });
});

test('survives any bytes after CONNECT, with bounded memory, and serves others', async () => {
  const witness = await openDevice();
  const valid = bytesOf5(
    PUBLISH('base/state', '{"speed":1}', { properties: { topicAlias: 1, userProperties: { a: 'b' } } }),
    { cmd: 'subscribe', messageId: 2, subscriptions: [{ topic: 'base/commands/#', qos: 1 }] },
    PUBLISH('', '{"speed":1}', { qos: 2, messageId: 3, properties: { topicAlias: 1 } }),
    { cmd: 'pubrel', messageId: 3, reasonCode: 0 },
  );
  const flipped = fc
    .array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
    .map((flips) => flips.reduce((bytes, [at, byte]) => bytes.fill(byte, at, at + 1), Buffer.from(valid)));
  const noise = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
  const inputs = fc.sample(fc.oneof(flipped, noise), { numRuns: 300, seed: 11 });
  const ids: string[] = [];
  // A device may not connect more often in a minute.
  while (ids.length * LIMITS.mqttConnectsPerMinute < inputs.length) ids.push(await create());
  const before = process.memoryUsage().rss;
  for (const [at, bytes] of inputs.entries()) {
    const raw = await open();
    expect(await answerTo(raw, CONNECT5(ids[at % ids.length] as string))).toMatchObject({ reasonCode: 0 });
    raw.socket.end(bytes);
    await raw.closed;
  }
  expect((process.memoryUsage().rss - before) / 1_048_576).toBeLessThan(100);
  expect(await answerTo(witness, PUBLISH('base/state', '{"n":1}'))).toMatchObject({ cmd: 'puback', reasonCode: 0 });
});
