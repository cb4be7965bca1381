/** Oversized, malformed and misplaced packets end their connection and nothing else. */
import { afterEach, describe, expect, test } from '@jest/globals';
import type { Packet } from 'mqtt-packet';
import { LIMITS } from '../../src/core/limits.js';
import { useService } from '../support/fixture.js';
import {
  bytesOf,
  CONNECT,
  connectDevice,
  connectRaw,
  createObject,
  PUBLISH,
  type RawDevice,
} from '../support/mqtt-device.js';
import { fc } from '../support/runs.js';
import { until } from '../support/until.js';

const MIB = 1_048_576;
const service = useService();
const raws: RawDevice[] = [];
let count = 0;

afterEach(() => {
  for (const raw of raws.splice(0)) raw.socket.destroy();
});

const url = (): string => service.service.mqttUrl as string;

async function open(): Promise<RawDevice> {
  const raw = await connectRaw(url());
  raws.push(raw);
  return raw;
}

/** A connection of a new object's device. */
async function openDevice(more: object = {}): Promise<RawDevice & { id: string }> {
  const id = `raw-${++count}`;
  await createObject(service.admin, id);
  const raw = await open();
  raw.send(CONNECT(id, more));
  await until(() => raw.received[0]?.cmd === 'connack', 'CONNACK');
  expect(raw.received).toMatchObject([{ cmd: 'connack', returnCode: 0 }]);
  return { ...raw, id };
}

/** Writes until the other side ends the connection, or everything was written. */
async function flood(raw: RawDevice, head: Buffer, bytes: number): Promise<void> {
  const chunk = Buffer.alloc(MIB, 0x61);
  raw.socket.write(head);
  for (let sent = 0; sent < bytes && !raw.isClosed(); sent += chunk.length) {
    await new Promise((resolve) => raw.socket.write(chunk, resolve));
  }
}

describe('a packet that is too large', () => {
  // Type, flags, and 200 MiB as the length.
  const PUBLISH_HEAD = Buffer.from([0x32, 0x80, 0x80, 0x80, 0x64]);
  const CONNECT_HEAD = Buffer.from([0x10, 0x80, 0x80, 0x80, 0x64]);

  test.each([
    ['before CONNECT', open, PUBLISH_HEAD],
    ['as CONNECT', open, CONNECT_HEAD],
    ['after CONNECT', openDevice, PUBLISH_HEAD],
  ])('disconnects at once without keeping data: %s', async (_name, connect, head) => {
    const raw = await connect();
    const before = process.memoryUsage().rss;
    await flood(raw, head, 200 * MIB);
    await raw.closed;
    // The test writes from the same process: a few chunks of it are its own.
    expect((process.memoryUsage().rss - before) / MIB).toBeLessThan(60);
  });

  test('accepts a packet of the maximum size, and acknowledges and drops one of one byte more', async () => {
    const raw = await openDevice();
    const empty = bytesOf(PUBLISH('base/state/text', '')).length - 4;
    const largest = 'x'.repeat(LIMITS.mqttPacketBytes - empty);
    raw.send(PUBLISH('base/state/text', `${largest}`), PUBLISH('base/state/text', `${largest}x`, { messageId: 2 }));
    raw.send(PUBLISH('base/state/text', 'last', { messageId: 3 }));
    await until(() => raw.received.length === 4, 'every acknowledgement');
    const { body } = await service.admin('GET', `objects/${raw.id}/packets?only=text`);
    expect(body.flatMap(({ text }: { text?: string }) => text?.length ?? [])).toEqual([4]);
  });
});

describe('a message that is too large', () => {
  const oversized = (more: object = {}) => PUBLISH('base/state/text', 'x'.repeat(LIMITS.mqttPacketBytes), more);
  const next = PUBLISH('base/state/n', '1', { messageId: 9 });

  async function expectNext(raw: RawDevice & { id: string }): Promise<void> {
    const isNext = ({ cmd, messageId }: Packet): boolean => cmd === 'puback' && messageId === 9;
    await until(() => raw.received.some(isNext), 'the next PUBACK');
    const { body } = await service.admin('GET', `objects/${raw.id}/packets`);
    expect(body.flatMap(({ n, text }: { n?: number; text?: string }) => text ?? n ?? [])).toEqual([1]);
    expect(raw.isClosed()).toBe(false);
  }

  test.each([
    ['QoS 0', oversized({ qos: 0, messageId: undefined }), []],
    ['QoS 1', oversized({ messageId: 0x1234 }), [{ cmd: 'puback', messageId: 0x1234 }]],
    ['QoS 2', oversized({ qos: 2, messageId: 7 }), [{ cmd: 'pubrec', messageId: 7 }]],
    ['DUP', oversized({ messageId: 5, dup: true }), [{ cmd: 'puback', messageId: 5 }]],
  ])('is acknowledged and reported, and the next one is stored: %s', async (_name, message, acknowledgements) => {
    const raw = await openDevice();
    raw.send(message, next);
    await expectNext(raw);
    // They may overtake each other: the other one waits for the database.
    expect(raw.received.slice(1)).toMatchObject([...acknowledgements, { cmd: 'puback', messageId: 9 }]);
    const { body: object } = await service.admin('GET', `objects/${raw.id}`);
    const refusals = `audit?where.action=${encodeURIComponent('message refused')}&where.entity=${object._id}`;
    const ofIt = async () => (await service.admin('GET', refusals)).body;
    await until(async () => (await ofIt()).length === 1, 'the notice of the refusal');
    expect((await ofIt())[0].path).toBe('base/state/text');
    expect(JSON.stringify(await ofIt())).toContain(`at most ${LIMITS.mqttPacketBytes} are permitted`);
    const reported = service.logLines.filter((line) => line.includes(object._id) && line.includes('message rejected'));
    expect(reported).toHaveLength(1);
  });

  test('is acknowledged when it follows CONNECT at once', async () => {
    const id = `raw-${++count}`;
    await createObject(service.admin, id);
    const raw = await open();
    raw.send(CONNECT(id), oversized(), next);
    await expectNext({ ...raw, id });
    expect(raw.received.map(({ cmd }) => cmd)).toEqual(['connack', 'puback', 'puback']);
  });

  test('does not stop a hundred more of it, and keeps nothing of them', async () => {
    const raw = await openDevice();
    const large = bytesOf(PUBLISH('base/state/text', Buffer.alloc(MIB, 0x61)));
    const before = process.memoryUsage().rss;
    for (let at = 0; at < 100; at++) await new Promise((resolve) => raw.socket.write(large, resolve));
    raw.send(next);
    await expectNext(raw);
    expect((process.memoryUsage().rss - before) / MIB).toBeLessThan(60);
  });

  test('is acknowledged before the connection ends when it is longer than any that is skipped', async () => {
    const raw = await openDevice();
    // QoS 1, 200 MiB, topic `a`, identifier 5.
    await flood(raw, Buffer.from([0x32, 0x80, 0x80, 0x80, 0x64, 0, 1, 0x61, 0, 5]), 200 * MIB);
    await raw.closed;
    expect(raw.received.slice(1)).toMatchObject([{ cmd: 'puback', messageId: 5 }]);
  });

  test.each([
    ['QoS 3', Buffer.from([0x36, 0xff, 0xff, 0x7f])],
    ['another type', Buffer.from([0x82, 0xff, 0xff, 0x7f])],
  ])('ends the connection if it is malformed: %s', async (_name, head) => {
    const raw = await openDevice();
    raw.socket.write(Buffer.concat([head, Buffer.alloc(64)]));
    await raw.closed;
    expect(raw.received).toHaveLength(1);
  });

  test('passes in pieces of any size between others', async () => {
    const raw = await openDevice();
    const bytes = bytesOf(PUBLISH('base/state/n', '1'), oversized({ messageId: 2 }), next);
    const sizes = fc.sample(fc.integer({ min: 1, max: 9_000 }), { numRuns: 200, seed: 5 });
    // The first bytes and the end of the large one arrive one by one.
    const ends = [bytes.length - 30, bytes.length - 29, bytes.length];
    const cuts = [...Array(60).keys(), ...sizes.map((size) => size * 7), ...ends];
    let from = 0;
    for (const to of cuts.toSorted((a, b) => a - b).filter((cut) => cut <= bytes.length)) {
      const piece = bytes.subarray(from, to);
      await new Promise<void>((resolve) => void raw.socket.write(piece, () => setImmediate(resolve)));
      from = to;
    }
    await until(() => raw.received.length === 4, 'every acknowledgement');
    const { body } = await service.admin('GET', `objects/${raw.id}/packets`);
    expect(body.flatMap(({ n }: { n?: number }) => n ?? [])).toEqual([1, 1]);
  });
});

describe('a packet at a wrong time', () => {
  const first: [string, Buffer][] = [
    ['anything but CONNECT', bytesOf({ cmd: 'pingreq' })],
    ['a PUBLISH', bytesOf(PUBLISH('base/state', '{}'))],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['type 0', Buffer.from([0x00, 0x00])],
    ['a length without end', Buffer.from([0x10, 0xff, 0xff, 0xff, 0xff, 0x01])],
    ['a CONNECT without content', Buffer.from([0x10, 0x00])],
    ['another protocol', Buffer.from([0x10, 0x0c, 0, 4, 0x4d, 0x51, 0x54, 0x58, 4, 2, 0, 60, 0, 0])],
  ];

  test.each(first)('refuses %s as the first packet', async (_name, bytes) => {
    const raw = await open();
    raw.socket.write(bytes);
    await raw.closed;
    expect(raw.received).toEqual([]);
  });

  test('refuses a connection without CONNECT in time', async () => {
    const { mqttConnectMs } = LIMITS;
    Object.assign(LIMITS, { mqttConnectMs: 500 });
    const raw = await open().finally(() => Object.assign(LIMITS, { mqttConnectMs }));
    raw.socket.write(Buffer.from([0x10, 0x20, 0x00]));
    await raw.closed;
    expect(raw.received).toEqual([]);
  });

  test.each([
    [6, [0x20, 3, 0, 0x84, 0]],
    [2, [0x20, 2, 0, 1]],
  ])('refuses a version that does not exist with CONNACK: %i', async (version, connack) => {
    const raw = await open();
    const answer: Buffer[] = [];
    raw.socket.on('data', (bytes) => answer.push(bytes));
    raw.socket.write(Buffer.from([0x10, 12, 0, 4, 0x4d, 0x51, 0x54, 0x54, version, 2, 0, 60, 0, 0]));
    await raw.closed;
    expect([...Buffer.concat(answer)]).toEqual(connack);
  });

  const later: [string, Packet | Buffer][] = [
    ['a second CONNECT', CONNECT('x')],
    ['an empty topic', Buffer.from([0x30, 0x04, 0, 0, 0x7b, 0x7d])],
    ['a wildcard in a topic', Buffer.from([0x30, 0x05, 0, 1, 0x23, 0x7b, 0x7d])],
    ['a QoS that is none', Buffer.from([0x36, 0x06, 0, 1, 0x61, 0, 1, 0x7b])],
    ['a message identifier that is cut off', Buffer.from([0x32, 0x03, 0, 1, 0x61])],
    ['a topic longer than its packet', Buffer.from([0x30, 0x04, 0xff, 0xff, 0x61, 0x61])],
    ['a packet that only servers send', Buffer.from([0x20, 0x02, 0, 0])],
    ['a SUBSCRIBE without filters', Buffer.from([0x82, 0x02, 0, 1])],
    ['type 15', Buffer.from([0xf0, 0x00])],
  ];

  test.each(later)('disconnects: %s', async (_name, sent) => {
    const raw = await openDevice();
    raw.socket.write(Buffer.isBuffer(sent) ? sent : bytesOf(sent));
    await raw.closed;
    const { body } = await service.admin('GET', `objects/${raw.id}/packets`);
    // None with a parameter: only those that say whether it is there.
    expect(body.filter((packet: object) => Object.keys(packet).length > 7)).toEqual([]);
  });

  test('rejects a topic with a NUL character', async () => {
    const raw = await openDevice();
    raw.send(PUBLISH('base/state\0', '{"a":1}'), PUBLISH('base/state/a', '2', { messageId: 2 }));
    await Promise.race([raw.closed, until(() => raw.received.some((packet) => packet.messageId === 2))]);
    const { body } = await service.admin('GET', `objects/${raw.id}/packets?where.a=1`);
    expect(body).toEqual([]);
  });
});

test('accepts packets that arrive byte by byte', async () => {
  const id = `raw-${++count}`;
  await createObject(service.admin, id);
  const raw = await open();
  raw.socket.setNoDelay(true);
  for (const byte of bytesOf(CONNECT(id), PUBLISH('base/state', '{"slow":1}'))) raw.socket.write(Buffer.from([byte]));
  await until(() => raw.received.some(({ cmd }) => cmd === 'puback'));
  const { body } = await service.admin('GET', `objects/${id}/packets?where.slow=1`);
  expect(body).toHaveLength(1);
});

test('slows down a flooding device without losing messages or delaying others', async () => {
  const raw = await openDevice();
  const other = await openDevice();
  const total = LIMITS.mqttPacketsPerSecond * 2;
  for (let at = 1; at <= total; at++) raw.send(PUBLISH('base/state', `{"at":${at}}`, { messageId: at }));
  other.send({ cmd: 'pingreq' });
  await until(() => other.received.at(-1)?.cmd === 'pingresp');
  expect(raw.received.length).toBeLessThan(total);
  await until(() => raw.received.length === total + 1, 'all to be acknowledged');
  const { body } = await service.admin('GET', `objects/${raw.id}/packets`);
  const numbers = body.map(({ at }: { at?: number }) => at).filter(Number.isInteger);
  expect(numbers).toEqual(Array.from({ length: total }, (_, at) => at + 1));
});

test('survives random bytes before and after CONNECT', async () => {
  const witness = await connectDevice(url(), (await openDevice()).id);
  const valid = bytesOf(PUBLISH('base/state', '{"speed":1}'), { cmd: 'pingreq' }, PUBLISH('base/state/a', '1'));
  const flipped = fc
    .array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
    .map((flips) => flips.reduce((bytes, [at, byte]) => bytes.fill(byte, at, at + 1), Buffer.from(valid)));
  const noise = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
  const inputs = fc.sample(fc.tuple(fc.boolean(), fc.oneof(flipped, noise)), { numRuns: 200, seed: 7 });
  const id = `raw-${++count}`;
  await createObject(service.admin, id);
  await Promise.all(
    inputs.map(async ([isConnected, bytes]) => {
      const raw = await open();
      if (isConnected) raw.send(CONNECT(id));
      raw.socket.end(bytes);
      await raw.closed;
    }),
  );
  await witness.publishAsync('base/state', '{"witness":1}', { qos: 1 });
  witness.end(true);
  expect((await service.admin('GET', 'objects')).status).toBe(200);
});
