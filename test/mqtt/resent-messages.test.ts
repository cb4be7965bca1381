/** Messages that a device sends again are stored once and sent to clients once. */
import { afterEach, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../src/core/limits.js';
import { createDigest, packetIdOf } from '../../src/devices/dedup-id.js';
import { ADMIN, type Listener, useService } from '../support/fixture.js';
import {
  bytesOf,
  CONNECT,
  CONNECT5,
  connectRaw,
  createObject,
  PUBLISH,
  type RawDevice,
} from '../support/mqtt-device.js';
import { fc } from '../support/runs.js';
import { until } from '../support/until.js';

let laterMs = 0;
const service = useService({ now: () => Date.now() + laterMs });
const raws: RawDevice[] = [];
let count = 0;

afterEach(() => {
  for (const raw of raws.splice(0)) raw.socket.destroy();
});

async function connect(id: string, more: object = {}): Promise<RawDevice> {
  const raw = await connectRaw(service.service.mqttUrl as string);
  raws.push(raw);
  raw.send(CONNECT(id, more));
  await until(() => raw.received.length > 0, 'CONNACK');
  return raw;
}

async function createRaw(): Promise<string> {
  const id = `again-${++count}`;
  await createObject(service.admin, id);
  return id;
}

/** Sends messages and waits for their acknowledgements. */
async function acknowledged(raw: RawDevice, ...packets: ReturnType<typeof PUBLISH>[]): Promise<void> {
  const wanted = raw.received.length + packets.length;
  raw.send(...packets);
  await until(() => raw.received.length >= wanted, `${wanted - 1} acknowledgements`);
}

const resent = (text: string, messageId: number) => PUBLISH('base/state', text, { messageId, dup: true });
const sent = (text: string, messageId: number) => PUBLISH('base/state', text, { messageId });

async function valuesOf(id: string): Promise<unknown[]> {
  const { body } = await service.admin('GET', `objects/${id}/packets`);
  return body.map(({ n }: { n: unknown }) => n).filter((n: unknown) => n !== undefined);
}

async function receivedBy(listener: Listener, id: string): Promise<unknown[]> {
  await service.settled();
  const packets = listener.take().filter(({ name, payload }) => name === 'object-packet' && payload.id === id);
  return packets.map(({ payload }) => payload.n).filter((n) => n !== undefined);
}

test('stores a message once that is marked as sent again, on the same or a later connection', async () => {
  const id = await createRaw();
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const first = await connect(id);
  await acknowledged(first, sent('{"n":1}', 1), resent('{"n":1}', 1), sent('{"n":2}', 2), resent('{"n":1}', 1));
  first.socket.destroy();
  const second = await connect(id, { clean: false });
  await acknowledged(second, resent('{"n":2}', 2), resent('{"n":3}', 3), sent('{"n":4}', 4), resent('{"n":3}', 3));
  expect(await valuesOf(id)).toEqual([1, 2, 3, 4]);
  expect(await receivedBy(listener, id)).toEqual([1, 2, 3, 4]);
  listener.close();
});

test('stores an unmarked message once that a client sends again when it continues its session', async () => {
  const id = await createRaw();
  const first = await connect(id, { clean: false });
  await acknowledged(first, sent('{"n":1}', 1), sent('{"n":2}', 2));
  first.socket.destroy();
  const second = await connect(id, { clean: false });
  await acknowledged(second, sent('{"n":2}', 2), sent('{"n":3}', 3));
  expect(await valuesOf(id)).toEqual([1, 2, 3]);
});

describe('a sensor that sleeps, whose connection breaks after each message, and whose identifiers begin again', () => {
  /** Sends each text on a connection of its own, which is cut after the acknowledgement. */
  async function sendAsleep(id: string, texts: readonly string[], more: object = {}): Promise<void> {
    for (const text of texts) {
      const raw = await connect(id, more);
      await acknowledged(raw, sent(text, 1));
      raw.socket.destroy();
    }
  }
  const ten = Array(10).fill('{"n":1}') as string[];

  test('stores ten messages with the same content', async () => {
    const id = await createRaw();
    await sendAsleep(id, ten);
    expect(await valuesOf(id)).toEqual(Array(10).fill(1));
  });

  test('stores the last state of a door that opens, closes and opens again', async () => {
    const id = await createRaw();
    await sendAsleep(id, ['{"n":"open"}', '{"n":"closed"}', '{"n":"open"}']);
    expect(await valuesOf(id)).toEqual(['open', 'closed', 'open']);
    expect((await service.admin('GET', `objects/${id}`)).body.state.n).toBe('open');
  });

  test('stores all messages of a bridge of Mosquitto that crashes and continues its session', async () => {
    const id = await createRaw();
    await sendAsleep(id, ten, { clean: false, bridgeMode: true });
    expect(await valuesOf(id)).toEqual(Array(10).fill(1));
  });

  test('stores all messages of a bridge of Mosquitto that crashes before they are acknowledged', async () => {
    const id = await createRaw();
    for (const [at, text] of ten.entries()) {
      const bridge = await connect(id, { clean: false, bridgeMode: true });
      bridge.socket.end(bytesOf(sent(text, 1)));
      await bridge.closed;
      await until(async () => (await valuesOf(id)).length > at, 'the message to be stored');
    }
  });

  test('stores a message once that is marked as sent again', async () => {
    const id = await createRaw();
    await sendAsleep(id, ten.slice(0, 3));
    const raw = await connect(id);
    await acknowledged(raw, resent('{"n":1}', 1), sent('{"n":2}', 2));
    expect(await valuesOf(id)).toEqual([1, 1, 1, 2]);
  });

  test('stores all messages also of arrays', async () => {
    const id = await createRaw();
    await sendAsleep(id, Array(3).fill('[{"n":1},{"n":2}]') as string[]);
    expect(await valuesOf(id)).toEqual([1, 2, 1, 2, 1, 2]);
  });
});

describe('ten connections that each publish the same message without the DUP flag', () => {
  const resumes = { clean: false };
  const old = { protocolId: 'MQIsdp', protocolVersion: 3 };
  const reset = `{"time":${Date.UTC(2080, 0, 6)},"n":1}`;

  test.each<
    [name: string, count: number, version: 4 | 5, flags: object, properties: object, more: object, text: string]
  >([
    ['of MQTT 3.1', 10, 4, old, {}, {}, '{"n":1}'],
    ['with QoS 2', 10, 4, {}, {}, { qos: 2 }, '{"n":1}'],
    ['with the largest identifier', 10, 4, {}, {}, { messageId: 65_535 }, '{"n":1}'],
    ['with the time of a clock that was reset', 10, 4, {}, {}, {}, '{"time":5,"n":1}'],
    ['with the time of a clock that was reset to the future', 10, 4, {}, {}, {}, reset],
    ['of MQTT 5 with a clean start', 10, 5, {}, { sessionExpiryInterval: 60 }, {}, '{"n":1}'],
    ['of MQTT 5 without a clean start, whose session ends with the connection', 10, 5, resumes, {}, {}, '{"n":1}'],
    ['of MQTT 5 whose session expires at once', 10, 5, resumes, { sessionExpiryInterval: 0 }, {}, '{"n":1}'],
    ['of MQTT 5 whose session is kept', 1, 5, resumes, { sessionExpiryInterval: 60 }, {}, '{"n":1}'],
    ['of MQTT 3.1.1 whose session is kept', 1, 4, resumes, {}, {}, '{"n":1}'],
  ])('are as many packets as are new: %s', async (_, count, version, flags, properties, more, text) => {
    const id = await createRaw();
    for (let at = 0; at < 10; at++) {
      const raw = await connectRaw(service.service.mqttUrl as string, version);
      raws.push(raw);
      raw.send(version === 5 ? CONNECT5(id, properties, flags) : CONNECT(id, flags));
      await until(() => raw.received.length > 0, 'CONNACK');
      await acknowledged(raw, PUBLISH('base/state', text, more));
      raw.socket.destroy();
      await raw.closed;
    }
    expect(await valuesOf(id)).toEqual(Array(count).fill(1));
  });

  test('are ten packets if the device does not wait for the acknowledgement', async () => {
    const id = await createRaw();
    for (let at = 0; at < 10; at++) {
      const raw = await connect(id);
      raw.socket.end(bytesOf(sent('{"n":1}', 1)));
      await raw.closed;
      await until(async () => (await valuesOf(id)).length > at, `packet ${at + 1}`);
    }
  });

  test('are two packets if only the second one continues a session', async () => {
    const id = await createRaw();
    for (const clean of [true, false]) {
      const raw = await connect(id, { clean });
      await acknowledged(raw, sent('{"n":1}', 1));
      raw.socket.destroy();
      await raw.closed;
    }
    expect(await valuesOf(id)).toEqual([1, 1]);
  });

  test('are as many packets as breaks if each leaves the same will', async () => {
    const id = await createRaw();
    const will = { topic: 'base/state', payload: Buffer.from('{"n":"gone"}'), qos: 1, retain: false };
    for (let at = 0; at < 3; at++) {
      const raw = await connect(id, { will });
      raw.socket.destroy();
      await until(async () => (await valuesOf(id)).length > at, `will ${at + 1}`);
    }
    expect(await valuesOf(id)).toEqual(['gone', 'gone', 'gone']);
  });
});

describe('a second message with the same content', () => {
  test('stores both when one connection uses the identifier again', async () => {
    const id = await createRaw();
    const raw = await connect(id);
    for (let at = 0; at < 3; at++) await acknowledged(raw, sent('{"n":1}', 1));
    expect(await valuesOf(id)).toEqual([1, 1, 1]);
  });

  test('stores both when the device had disconnected in between', async () => {
    const id = await createRaw();
    for (let at = 0; at < 3; at++) {
      const raw = await connect(id);
      await acknowledged(raw, sent('{"n":1}', 1));
      raw.send({ cmd: 'disconnect' });
      await raw.closed;
    }
    expect(await valuesOf(id)).toEqual([1, 1, 1]);
  });

  test('stores both with QoS 0', async () => {
    const id = await createRaw();
    const raw = await connect(id);
    const once = PUBLISH('base/state', '{"n":1}', { qos: 0, messageId: undefined });
    raw.send(once, once, once);
    await acknowledged(raw, sent('{"n":2}', 1));
    expect(await valuesOf(id)).toEqual([1, 1, 1, 2]);
  });
});

test('stores messages of the same time and content once, with any identifier, and others of that time too', async () => {
  const id = await createRaw();
  const raw = await connect(id);
  const at = '"time":1748764800000';
  await acknowledged(raw, sent(`{${at},"n":1}`, 1), sent(`{${at},"n":1}`, 2), sent(`{${at},"n":2}`, 3));
  const next = await connect(id);
  await acknowledged(next, sent(`{${at},"n":1}`, 9), sent(`[{${at},"n":3},{${at},"n":3}]`, 10));
  expect(await valuesOf(id)).toEqual([1, 2, 3, 3]);
});

describe('an array in which some packets have no time that can be right', () => {
  const AT = 1_748_764_800_000;
  const wrong = '{"time":1000,"n":"wrong"}';
  const timed = `{"time":${AT},"n":"timed"}`;
  const own = '{"_id":"own","n":"own"}';
  const plain = '{"n":"plain"}';

  /** Sends the array twice with DUP 0, and returns how often each of its packets is stored. */
  async function sendTwice(items: readonly string[], again: 'another identifier' | 'the same identifier') {
    const id = await createRaw();
    const raw = await connect(id);
    const text = `[${items.join(',')}]`;
    await acknowledged(raw, sent(text, 1));
    await acknowledged(raw, sent(text, again === 'another identifier' ? 2 : 1));
    const values = await valuesOf(id);
    return items.map((item) => values.filter((value) => value === JSON.parse(item).n).length);
  }

  test.each<[string, readonly string[], readonly number[]]>([
    ['a wrong time first', [wrong, timed], [2, 1]],
    ['a wrong time last', [timed, wrong], [1, 2]],
    ['no time', [timed, plain, own], [1, 2, 1]],
    ['no time and an identifier', [own, plain], [1, 2]],
    ['all kinds', [wrong, own, plain, timed], [2, 1, 2, 1]],
    ['a time in each', [timed, own], [1, 1]],
  ])('stores the others once when it is published again: %s', async (_, items, counts) => {
    expect(await sendTwice(items, 'another identifier')).toEqual(counts);
    expect(await sendTwice(items, 'the same identifier')).toEqual(counts);
  });

  test('stores all of them once when it is sent again', async () => {
    const id = await createRaw();
    const text = `[${[wrong, own, plain, timed].join(',')}]`;
    const raw = await connect(id);
    await acknowledged(raw, sent(text, 1), resent(text, 1));
    await acknowledged(await connect(id), resent(text, 1));
    expect((await valuesOf(id)).toSorted()).toEqual(['own', 'plain', 'timed', 'wrong']);
  });
});

describe('a packet of a clock that is slightly more ahead than is permitted', () => {
  const MINUTE_MS = 60_000;
  afterEach(() => {
    laterMs = 0;
  });

  test.each<[string, (ms: number) => string]>([
    ['with ms', (ms) => `{"time":${ms},"n":1}`],
    ['with seconds as text', (ms) => `{"time":"${Math.floor(ms / 1_000)}","n":1}`],
    ['with text', (ms) => `{"time":"${new Date(ms).toISOString()}","n":1}`],
    ['in an array', (ms) => `[{"time":${ms},"n":1}]`],
  ])('is stored once when it is published again at a moment at which its time is right: %s', async (_, textOf) => {
    const id = await createRaw();
    const raw = await connect(id);
    const text = textOf(Date.now() + LIMITS.packetAheadMs + MINUTE_MS);
    await acknowledged(raw, sent(text, 1), sent(text, 2));
    laterMs = 3 * MINUTE_MS;
    await acknowledged(raw, sent(text, 3));
    await acknowledged(await connect(id), sent(text, 1));
    expect(await valuesOf(id)).toEqual([1]);
  });

  test('is stored beside the right ones of its array', async () => {
    const id = await createRaw();
    const nowMs = Date.now();
    const text = `[{"time":${nowMs + LIMITS.packetAheadMs + MINUTE_MS},"n":"ahead"},{"time":${nowMs},"n":"right"},{"n":"none"}]`;
    const raw = await connect(id);
    await acknowledged(raw, sent(text, 1));
    laterMs = 3 * MINUTE_MS;
    await acknowledged(raw, sent(text, 2));
    expect((await valuesOf(id)).toSorted()).toEqual(['ahead', 'none', 'none', 'right']);
  });
});

test('stores the missing packets of a message that was stored in part when it is sent again', async () => {
  const id = await createRaw();
  const first = await connect(id);
  const text = '[{"n":1},{"n":2},{"n":3}]';
  await acknowledged(first, sent(text, 1));
  first.socket.destroy();
  await service.client
    .db()
    .collection('packets')
    .deleteMany({ id, n: { $gt: 1 } });
  const second = await connect(id);
  await acknowledged(second, resent(text, 1), resent(text, 1));
  expect(await valuesOf(id)).toEqual([1, 2, 3]);
});

test('stores one packet for each `_id` of a device, and the same `_id` for another object', async () => {
  const id = await createRaw();
  const other = await createRaw();
  const raw = await connect(id);
  const _id = 'aaaaaaaaaaaaaaaaaaaaaaaa';
  await acknowledged(raw, sent(`{"_id":"${_id}","n":1}`, 1), sent(`{"_id":"${_id}","n":2}`, 2));
  expect(await valuesOf(id)).toEqual([1]);
  const second = await connect(other);
  await acknowledged(raw, sent('{"time":1748764800000,"n":5}', 3));
  await acknowledged(second, sent('{"time":1748764800000,"n":5}', 3));
  expect([await valuesOf(id), await valuesOf(other)]).toEqual([[5, 1], [5]]);
});

test('stores a message whose `_id` another object has used before', async () => {
  const id = await createRaw();
  const stranger = await createRaw();
  const { body: victim } = await service.admin('GET', `objects/${id}`);
  const text = '{"time":1748764800000,"n":1}';
  const content = Buffer.from(`${victim._id}\n\nbase/state\n${text}`);
  const first = await connect(id);
  await acknowledged(first, sent(text, 1));
  const [known] = (await service.admin('GET', `objects/${id}/packets?where.n=1`)).body;
  const guess = packetIdOf(1_748_764_800_000, createDigest(Buffer.alloc(0))(content));
  expect(guess).not.toBe(known._id);
  await service.client.db().collection('packets').deleteMany({ id, n: 1 });
  const taken = [known._id, guess].map((_id) => ({ _id, n: 9 }));
  expect((await service.admin('POST', `objects/${stranger}/packets`, taken)).body).toEqual({ success: true, count: 2 });
  await acknowledged(first, sent(text, 2), resent(text, 2));
  expect([await valuesOf(id), await valuesOf(stranger)]).toEqual([[1], [9, 9]]);
});

test('stores each of a hundred messages once that are sent one to five times in any order', async () => {
  const id = await createRaw();
  const listener = await service.listen(await service.tokenOf(ADMIN.login, ADMIN.password));
  const raw = await connect(id);
  const times = fc.sample(fc.integer({ min: 1, max: 5 }), { numRuns: 100, seed: 11 });
  const copies = times.flatMap((often, n) => Array(often).fill(n) as number[]);
  const order = fc.sample(fc.shuffledSubarray(copies, { minLength: copies.length }), { numRuns: 1, seed: 3 })[0] ?? [];
  await acknowledged(raw, ...order.map((n) => resent(`{"n":${n}}`, n + 1)));
  const numbers = Array.from({ length: 100 }, (_, n) => n);
  const ascending = (values: unknown[]) => values.toSorted((a, b) => Number(a) - Number(b));
  expect(ascending(await valuesOf(id))).toEqual(numbers);
  expect(ascending(await receivedBy(listener, id))).toEqual(numbers);
  listener.close();
});
