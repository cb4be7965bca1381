/** Packets of all versions from bytes: of any bytes, in any pieces, and with any flipped bits. */
import { describe, expect, test } from '@jest/globals';
import { generate, type Packet, parser } from 'mqtt-packet';
import { LIMITS } from '../../../src/core/limits.js';
import { decode, decodeConnect, type RawPacket, type Version } from '../../../src/devices/mqtt/codec.js';
import type { OversizedMessage } from '../../../src/devices/mqtt/oversized-message.js';
import { PacketReader } from '../../../src/devices/mqtt/packet-reader.js';
import { FIRST_FAILURE, ProtocolError } from '../../../src/devices/mqtt/reason-codes.js';
import { fc, runsOf } from '../../support/runs.js';

const CONNECT = Buffer.from([0x10, 13, 0, 4, 0x4d, 0x51, 0x54, 0x54, 5, 2, 0, 60, 0, 0, 0]);

interface Read {
  readonly packets: string[];
  readonly oversized: OversizedMessage[];
  /** The reason code of the error; null for none. */
  readonly failed: number | null;
}

/** Reads pieces of a connection, all of which may pass at once. */
function read(pieces: readonly Buffer[]): Read {
  const packets: string[] = [];
  const oversized: OversizedMessage[] = [];
  const reader = new PacketReader({
    mayBegin: () => true,
    onMessageLength: () => undefined,
    onPacket: ({ bytes, bodyAt }) => packets.push(`${bodyAt} ${bytes.toString('hex')}`),
    onOversized: (message) => oversized.push(message),
  });
  try {
    for (const piece of pieces) reader.read(piece);
    return { packets, oversized, failed: null };
  } catch (error) {
    expect(error).toBeInstanceOf(ProtocolError);
    return { packets, oversized, failed: (error as ProtocolError).reasonCode };
  }
}

function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b);
  return [...places, bytes.length].map((to, at) => bytes.subarray(places[at - 1] ?? 0, to));
}

const anyBytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((bytes) => Buffer.from(bytes));
const text = fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' });
const id = fc.integer({ min: 1, max: 65_535 });
const qos = fc.constantFrom(0, 1, 2);
const payload = anyBytes(200);

const publish = fc.record({
  cmd: fc.constant('publish'),
  topic: text,
  payload,
  qos,
  messageId: id,
  dup: fc.boolean(),
  retain: fc.boolean(),
  properties: fc.record(
    {
      payloadFormatIndicator: fc.boolean(),
      messageExpiryInterval: fc.nat(),
      topicAlias: id,
      responseTopic: text,
      correlationData: payload,
      contentType: text,
      userProperties: fc.record({ a: text, b: fc.array(text, { minLength: 2, maxLength: 3 }) }),
    },
    { requiredKeys: [] },
  ),
});
const subscribe = fc.record({
  cmd: fc.constant('subscribe'),
  messageId: id,
  subscriptions: fc.array(fc.record({ topic: text, qos }), { minLength: 1, maxLength: 5 }),
});
const unsubscribe = fc.record({
  cmd: fc.constant('unsubscribe'),
  messageId: id,
  unsubscriptions: fc.array(text, { minLength: 1, maxLength: 5 }),
});
const answer = fc.record({
  cmd: fc.constantFrom('puback', 'pubrec'),
  messageId: id,
  reasonCode: fc.constantFrom(0, 0x10, 0x80, 0x97),
  properties: fc.record({ reasonString: text }),
});
const single = fc.constantFrom({ cmd: 'pingreq' }, { cmd: 'disconnect', reasonCode: 4 });
const anyPacket = fc.oneof(publish, subscribe, unsubscribe, answer, single) as fc.Arbitrary<Packet>;
const version = fc.constantFrom<Version>(3, 4, 5);

const rawOf = (bytes: Buffer): RawPacket => {
  let bodyAt = 1;
  while (bodyAt < 4 && (bytes[bodyAt] as number) >= 128) bodyAt++;
  return { bytes, bodyAt: bodyAt + 1 };
};

describe('the reader', () => {
  test('finds the same packets, and the same error, in pieces of any size', () => {
    const stream = fc.array(fc.oneof({ weight: 4, arbitrary: anyPacket }, anyBytes(12)), { maxLength: 8 });
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 12 }), (parts, cuts) => {
        const bytes = Buffer.concat([
          CONNECT,
          ...parts.map((part) => (Buffer.isBuffer(part) ? part : generate(part as Packet, { protocolVersion: 5 }))),
        ]);
        expect(read(split(bytes, cuts))).toEqual(read([bytes]));
      }),
      { numRuns: runsOf(1_000) },
    );
  });

  test('keeps no more of a packet than what has arrived', () => {
    const reader = new PacketReader({
      mayBegin: () => true,
      onMessageLength: () => undefined,
      onPacket: () => undefined,
      onOversized: () => undefined,
    });
    // A message of 64 KiB begins, and nothing follows.
    reader.read(CONNECT);
    const before = process.memoryUsage().arrayBuffers;
    reader.read(Buffer.from([0x30, 0xff, 0xff, 0x03]));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(LIMITS.mqttPacketBytes / 2);
  });
});

describe('decoding', () => {
  test('returns a packet as it was encoded', () => {
    fc.assert(
      fc.property(anyPacket, (packet) => {
        const decoded = decode(rawOf(generate(packet, { protocolVersion: 5 })), 5);
        const again = generate(decoded, { protocolVersion: 5 });
        expect(again.toString('hex')).toBe(generate(packet, { protocolVersion: 5 }).toString('hex'));
      }),
      { numRuns: runsOf(1_000) },
    );
  });

  test('returns a message as the parser of mqtt-packet does, of every version', () => {
    fc.assert(
      fc.property(publish, version, (message, of) => {
        const packet = (of === 5 ? message : { ...message, properties: undefined }) as Packet;
        const bytes = generate(packet, { protocolVersion: of });
        let parsed: Packet | null = null;
        const reader = parser({ protocolVersion: of });
        reader.on('packet', (one) => {
          parsed = one;
        });
        reader.parse(bytes);
        const { length: _, ...expected } = parsed as unknown as Packet;
        const { length: __, ...decoded } = decode(rawOf(bytes), of);
        expect(decoded).toEqual(expected);
      }),
      { numRuns: runsOf(1_000) },
    );
  });

  test('returns a packet or throws a ProtocolError for any bytes, and reads the next packet', () => {
    const valid = generate({ cmd: 'pingreq' });
    const flips = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 3 });
    const flipped = fc.tuple(anyPacket, flips).map(([packet, changes]) => {
      const bytes = generate(packet, { protocolVersion: 5 });
      for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
      return bytes;
    });
    fc.assert(
      fc.property(fc.oneof(flipped, anyBytes(60)), version, (bytes, of) => {
        // As the reader would pass them.
        for (const { packets } of [read([CONNECT, bytes])]) {
          for (const packet of packets.slice(1)) {
            const [at = '', hex = ''] = packet.split(' ');
            try {
              decode({ bytes: Buffer.from(hex, 'hex'), bodyAt: Number(at) }, of);
            } catch (error) {
              expect(error).toBeInstanceOf(ProtocolError);
              expect((error as ProtocolError).reasonCode).toBeGreaterThanOrEqual(FIRST_FAILURE);
            }
            expect(decode(rawOf(valid), of)).toMatchObject({ cmd: 'pingreq' });
          }
        }
      }),
      { numRuns: runsOf(3_000) },
    );
  });

  test('returns a CONNECT or throws a ProtocolError for any bytes', () => {
    const will = fc.record({ topic: text, payload, qos: fc.constantFrom(0, 1, 2), retain: fc.boolean() });
    const connect = fc.record({
      cmd: fc.constant('connect'),
      protocolVersion: version,
      clientId: text,
      username: text,
      password: payload,
      will: fc.option(will, { nil: undefined }),
      properties: fc.record({
        receiveMaximum: id,
        sessionExpiryInterval: fc.nat(),
        userProperties: fc.record({ a: text }),
      }),
    });
    const flips = fc.array(fc.tuple(fc.integer({ min: 2, max: 400 }), fc.nat(255)), { maxLength: 3 });
    fc.assert(
      fc.property(connect, flips, (packet, changes) => {
        const bytes = generate(packet as Packet);
        for (const [at, byte] of changes) if (at < bytes.length) bytes[at] = byte;
        try {
          expect(decodeConnect(rawOf(bytes))).toMatchObject({ cmd: 'connect', clientId: expect.any(String) });
        } catch (error) {
          if (changes.length === 0) throw error;
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }),
      { numRuns: runsOf(2_000) },
    );
  });
});
