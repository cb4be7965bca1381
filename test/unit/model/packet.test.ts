/** What a device sends becomes a packet. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { type Declarations, declarationsOf } from '../../../src/core/model.js';
import { createStampClock, parseBatch, toPacket } from '../../../src/packets/packet.js';
import { fc } from '../../support/runs.js';

const NOW = 1_750_000_000_000;
const ID = '65a00000000000000000000a';
const NONE = declarationsOf(null);
const DECLARED = declarationsOf({
  children: [
    { type: 'argument', id: 'speed', dataType: 'number' },
    { type: 'argument', id: 'doors', dataType: 'boolean[]' },
  ],
});
const SOURCE = { objectId: '65a000000000000000000001', ownId: 'car', groupId: '65a000000000000000000002' };
const parseMessages = (body: unknown, declared: Declarations, nowMs: number) =>
  parseBatch(body, declared, nowMs).messages;

describe('a valid message', () => {
  test.each<[what: string, body: object, message: object]>([
    ['empty', {}, { id: null, timeMs: null, online: true, parameters: {} }],
    [
      'with parameters',
      { lat: 1.5, on: true, s: 'x', l: [1], o: { a: null }, n: null },
      {
        id: null,

        timeMs: null,
        online: true,
        parameters: { lat: 1.5, on: true, s: 'x', l: [1], o: { a: null }, n: null },
      },
    ],
    [
      'with an _id, in small letters',
      { _id: ID.toUpperCase() },
      { id: ID, isChosen: true, timeMs: null, online: true, parameters: {} },
    ],
    [
      'with a time in ms',
      { time: 1_700_000_000_005 },
      { id: null, timeMs: 1_700_000_000_005, online: true, parameters: {} },
    ],
    [
      'with a time as text',
      { time: '2024-02-29T12:30Z' },
      { id: null, timeMs: Date.UTC(2024, 1, 29, 12, 30), online: true, parameters: {} },
    ],
    [
      'with ms as text',
      { time: '1700000000005' },
      { id: null, timeMs: 1_700_000_000_005, online: true, parameters: {} },
    ],
    ['of 2000', { time: 946_684_800_000 }, { id: null, timeMs: 946_684_800_000, online: true, parameters: {} }],
    ['with seconds', { time: 1_700_000_000.5 }, { id: null, timeMs: 1_700_000_000_500, online: true, parameters: {} }],
    [
      'with a time at the edge of the future',
      { time: NOW + LIMITS.packetAheadMs },
      { id: null, timeMs: NOW + LIMITS.packetAheadMs, online: true, parameters: {} },
    ],
    ['offline', { online: false }, { id: null, timeMs: null, online: false, parameters: {} }],
    [
      'with null for what it does not know',
      { _id: null, time: null },
      { id: null, timeMs: null, online: true, parameters: {} },
    ],
    [
      'without what only the service sets',
      { _ts: 1, _oid: 'x', _gid: 'y', id: 'other', success: true, a: 1 },
      { id: null, timeMs: null, online: true, parameters: { a: 1 } },
    ],
    [
      'with declared and undeclared parameters',
      { speed: 5, doors: [true], other: 'kept' },
      { id: null, timeMs: null, online: true, parameters: { speed: 5, doors: [true], other: 'kept' } },
    ],
    [
      'with null for a declared parameter',
      { speed: null },
      { id: null, timeMs: null, online: true, parameters: { speed: null } },
    ],
    ...[5, 946_684_799_999, NOW + LIMITS.packetAheadMs + 1].map((time): [string, object, object] => [
      `of a clock that is wrong: ${time}`,
      { time },
      { id: null, timeMs: null, deviceTimeMs: time, online: true, parameters: {} },
    ]),
  ])('is parsed: %s', (_, body, message) => expect(parseMessages(body, DECLARED, NOW)).toEqual([message]));

  test('is parsed as each item of a list', () => {
    expect(
      parseMessages([{ a: 1 }, { time: NOW }], NONE, NOW).map(({ parameters, timeMs }) => [parameters, timeMs]),
    ).toEqual([
      [{ a: 1 }, null],
      [{}, NOW],
    ]);
    expect(parseMessages([], NONE, NOW)).toEqual([]);
  });
});

describe('an invalid message', () => {
  test.each<[body: unknown, why: string]>([
    [undefined, 'the body: expected a JSON object'],
    [null, 'the body: expected a JSON object'],
    ['text', 'the body: expected a JSON object'],
    [{ _id: '' }, '_id: expected a number, or text of at most 128 characters'],
    [{ _id: {} }, '_id: expected a number, or text'],
    [{ _id: true, online: 'yes' }, 'online: expected a boolean; _id: expected a number, or text'],
    [{ online: 2 }, 'online: expected a boolean'],
    [{ online: [] }, 'online: expected a boolean'],
    [{ time: 'yesterday' }, 'time: expected a time'],
    [{ time: -8.64e15 }, 'time: expected a time'],
    [{ time: 20_261_123 }, 'time: these digits look like a date'],
    [{ time: true }, 'time: expected a time'],
    [{ speed: '5 km/h' }, "speed: expected number, as the object's model declares it"],
    [{ doors: [1] }, 'doors: expected boolean[]'],
    [{ a: { $b: 1 } }, '"a.$b": a field name'],
    [JSON.parse('{"__proto__":1}'), 'a field name'],
    [JSON.parse('{"a":1e999}'), 'the number is too large'],
  ])('is refused: %#, %p', (body, why) => {
    expect(() => parseMessages(body, DECLARED, NOW)).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining(why) }),
    );
  });
});

test.each<[item: unknown, reason: string]>([
  [1, 'a packet: expected a JSON object'],
  [[], 'a packet: expected a JSON object'],
  [null, 'a packet: expected a JSON object'],
  [{ speed: true }, "speed: expected number, as the object's model declares it"],
  [{ time: {} }, 'time: expected a time'],
  [{ a: { $b: 1 } }, '"a.$b": a field name'],
])('refuses an item of a list alone: %j', (item, reason) => {
  const { messages, refused } = parseBatch([{ n: 1 }, item, { n: 2 }], DECLARED, NOW);
  expect(messages.map(({ index, parameters }) => [index, parameters])).toEqual([
    [0, { n: 1 }],
    [2, { n: 2 }],
  ]);
  expect(refused).toEqual([{ index: 1, reason: expect.stringContaining(reason) }]);
});

test('refuses more messages than the limit of a request', () => {
  const many = Array.from({ length: LIMITS.packetsPerRequest + 1 }, () => ({}));
  expect(parseMessages(many.slice(1), NONE, NOW)).toHaveLength(10_000);
  expect(() => parseMessages(many, NONE, NOW)).toThrow('the body: more than 10000 packets');
});

test.each(['constructor', '__proto__', '_bsontype', '$lat', 'a.b'])('drops a member called %s', (id) => {
  const argument = (name: string, more: object) => ({ id: name, type: 'argument', ...more });
  const children = [argument('gps', { dataType: 'object' }), argument(id, { reference: 'gps.lat' })];
  const [message] = parseMessages({ gps: { lat: 1 } }, declarationsOf({ children }), NOW);
  expect(message?.parameters).toEqual({ gps: { lat: 1 } });
});

describe('a packet', () => {
  test('contains its id, both times, its object and its parameters, in this order', () => {
    const [message] = parseMessages({ speed: 5, time: NOW - 7, online: false }, NONE, NOW);
    expect(JSON.stringify(toPacket(message as NonNullable<typeof message>, ID, SOURCE, 9_000_001))).toBe(
      JSON.stringify({
        _id: ID,
        _ts: 9_000_001,
        time: NOW - 7,
        online: false,
        _oid: SOURCE.objectId,
        id: 'car',
        _gid: SOURCE.groupId,
        speed: 5,
      }),
    );
  });

  test("uses the server's time, by the clock of its stamp, if it has none", () => {
    const [message] = parseMessages({}, NONE, NOW);
    expect(toPacket(message as NonNullable<typeof message>, ID, SOURCE, NOW * 1_000 + 999)).toMatchObject({
      time: NOW,
      _ts: NOW * 1_000 + 999,
    });
  });

  test('gets a later stamp than the previous one, and never behind the clock', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 10 }), { minLength: 2 }), (times) => {
        let at = 0;
        const stamp = createStampClock(() => times[at] as number);
        let before = 0;
        for (; at < times.length; at++) {
          const us = stamp();
          expect(us).toBeGreaterThan(before);
          expect(us).toBeGreaterThanOrEqual((times[at] as number) * 1_000);
          before = us;
        }
      }),
    );
  });

  test('uses the steady clock after a step back of the system clock, until that has caught up', () => {
    let systemMs = 1_000_000;
    let steadyMs = 0;
    const stamp = createStampClock(
      () => systemMs,
      () => steadyMs,
    );
    const stampsAfter = (...steps: [systemMs: number, passedMs: number][]): number[] =>
      steps.map(([toMs, passedMs]) => {
        systemMs = toMs;
        steadyMs += passedMs;
        return stamp() / 1_000;
      });
    expect(stampsAfter([1_000_000, 0], [1_000_500, 500])).toEqual([1_000_000, 1_000_500]);
    // An hour back; and another one.
    expect(stampsAfter([1_000, 500], [2_000, 1_000], [100, 1_000])).toEqual([1_001_000, 1_002_000, 1_003_000]);
    expect(stampsAfter([1_005_000, 2_000], [1_006_000, 1_000])).toEqual([1_005_000, 1_006_000]);
  });
});

describe('the parameters of models exported by another platform', () => {
  const children = [
    { type: 'argument', id: 'speed', dataType: 'number' },
    { type: 'argument', id: 'speeds', dataType: 'number[]' },
    { type: 'argument', id: '_ts', dataType: 'number', reference: '_ts' },
    { type: 'argument', id: 'time', dataType: 'number', reference: 'time' },
    { type: 'argument', id: 'in1', dataType: 'object' },
    { type: 'argument', id: 'in1.voltage', dataType: 'number' },
    { type: 'argument', id: 'volts', dataType: 'number', reference: 'in1.voltage' },
    { type: 'argument', id: '$sum', dataType: 'number', reference: 'in1.voltage' },
    { type: 'argument', id: '3303_0_5601', dataType: 'number' },
  ];
  const declared = declarationsOf({ children });
  const parametersOf = (body: object) => parseMessages(body, declared, NOW)[0]?.parameters;

  test.each<[what: string, body: object, parameters: object]>([
    ['a number sent as text', { speed: '21.30' }, { speed: 21.3 }],
    ['a number where nothing is declared', { other: '21.30' }, { other: '21.30' }],
    ['a field of the service', { _ts: 'x' }, {}],
    ['a name that begins with a digit', { '3303_0_5601': '5' }, { '3303_0_5601': 5 }],
    ['a member of another parameter', { in1: { voltage: 12 } }, { in1: { voltage: 12 }, volts: 12 }],
    ['the same as text', { in1: { voltage: '12.5' } }, { in1: { voltage: '12.5' }, volts: 12.5 }],
    ['the same of another type', { in1: { voltage: 'low' } }, { in1: { voltage: 'low' } }],
    ['one that is sent by itself', { in1: { voltage: 12 }, volts: 5 }, { in1: { voltage: 12 }, volts: 5 }],
    ['the same by its dotted name', { 'in1.voltage': '12.5' }, { in1: { voltage: 12.5 }, volts: 12.5 }],
    ['one that is not there', { in1: {} }, { in1: {} }],
  ])('include %s', (_, body, parameters) => expect(parametersOf(body)).toEqual(parameters));

  test.each<[body: object, why: string]>([
    [{ speed: 'fast' }, 'speed: expected number'],
    [{ speed: '' }, 'speed: expected number'],
    [{ speeds: ['1', 2] }, 'speeds: expected number[]'],
  ])('exclude %j', (body, why) => {
    expect(() => parametersOf(body)).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining(why) }),
    );
  });
});

describe('the parameters of a message', () => {
  const children = [
    { type: 'argument', id: 'speed', dataType: 'number' },
    { type: 'argument', id: 'on', dataType: 'boolean' },
    { type: 'argument', id: 'in1.volts', dataType: 'number' },
    { type: 'argument', id: 'in1.on', dataType: 'boolean' },
  ];
  const declared = declarationsOf({ children });
  const parse = (body: unknown) => {
    const { messages, incomplete } = parseBatch(body, declared, NOW);
    return { parameters: messages[0]?.parameters, why: incomplete[0]?.reason };
  };

  test.each<[body: object, parameters: object]>([
    [{ 'position.latitude': 43.9, 'position.longitude': 37.6 }, { position: { latitude: 43.9, longitude: 37.6 } }],
    [{ 'a.b.c': 1, 'a.b.d': 2, 'a.e': 3 }, { a: { b: { c: 1, d: 2 }, e: 3 } }],
    [{ a: { b: 1 }, 'a.c': 2 }, { a: { b: 1, c: 2 } }],
    [{ 'a.c': 2, a: { b: 1 } }, { a: { c: 2, b: 1 } }],
    [{ 'a.b': { c: 1 }, a: { b: { d: 2 } } }, { a: { b: { c: 1, d: 2 } } }],
    [{ x: { 'a.b': 1, 'a.c': 2 } }, { x: { a: { b: 1, c: 2 } } }],
    [{ x: [{ 'a.b': 1 }, { 'a.b': 2 }] }, { x: [{ a: { b: 1 } }, { a: { b: 2 } }] }],
    [{ 'x.y': { 'a.b': 1 } }, { x: { y: { a: { b: 1 } } } }],
    [{ 'in1.volts': '12.50', 'in1.on': 'ON' }, { in1: { volts: 12.5, on: true } }],
    [{ '_x.y': 1, a: 1 }, { a: 1 }],
  ])('have members where names are dotted: %j', (body, parameters) => {
    expect(parse(body)).toEqual({ parameters, why: undefined });
  });

  test.each<[body: object, name: string]>([
    [{ a: 1, 'a.b': 2 }, 'a.b'],
    [{ 'a.b': 2, a: 1 }, 'a'],
    [{ 'a.b': 1, a: { b: 2 } }, 'a.b'],
    [{ 'a.b': 1, 'a.b.c': 2 }, 'a.b.c'],
    [{ 'a.b.c': 2, 'a.b': 1 }, 'a.b'],
    [{ a: null, 'a.b': 2 }, 'a.b'],
    [{ a: [1], 'a.0': 2 }, 'a.0'],
    [{ x: { a: 1, 'a.b': 2 } }, 'x.a.b'],
    [{ x: { 'a.b': 2, a: 1 } }, 'x.a'],
  ])('are refused where two have the same place: %j', (body, name) => {
    expect(() => parse(body)).toThrow(
      expect.objectContaining({ status: 400, message: `"${name}": another field of the packet has this place` }),
    );
  });

  test.each<[bad: object | string, why: string]>([
    [{ speed: 'fast' }, "speed: expected number, as the object's model declares it"],
    [{ on: 'maybe' }, 'on: expected boolean'],
    [{ on: 2 }, 'on: expected boolean'],
    [{ 'in1.volts': 'low' }, 'in1.volts: expected number'],
    [{ a: { $b: 1 } }, '"a.$b": a field name may not'],
    [{ $a: 1 }, '"$a": a field name may not'],
    [{ 'a.$b': 1 }, '"a.$b": a field name may not'],
    [{ 'a..b': 1 }, '"a..b": a field name may not be empty'],
    [{ '.a': 1 }, '".a": a field name may not be empty'],
    [{ 'a.': 1 }, '"a.": a field name may not be empty'],
    [{ '.': 1 }, '".": a field name may not be empty'],
    [{ '': 1 }, '"": a field name may not be empty'],
    [{ x: { 'a..b': 1 } }, '"x.a.": a field name may not be empty'],
    ['{"__proto__":1}', '"__proto__": a field name may not'],
    ['{"a.__proto__":1}', '"a.__proto__": a field name may not'],
    ['{"a.__proto__.b":1}', '"a.__proto__.b": a field name may not'],
    ['{"x":{"a.__proto__.polluted":1}}', '"x.a.__proto__": a field name may not'],
    ['{"x":{"__proto__.polluted":1}}', '"x.__proto__": a field name may not'],
    ['{"constructor.prototype.polluted":1}', 'a field name may not'],
    ['{"a":1e999}', '"a": the number is too large'],
    [{ a: '\ud800' }, '"a": the text is not well-formed Unicode'],
    [{ [`${'a.'.repeat(20)}b`]: 1 }, 'nested more than 20 deep'],
    [{ 'time.zone': 'CET' }, '"time.zone": time has no members'],
    [{ x: { [`${'a.'.repeat(5_000)}b`]: 1 } }, 'a field name may not'],
    [{ x: { [`${'a.'.repeat(15)}b`]: [[[[[1]]]]] } }, 'nested more than 20 deep'],
    [{ online: 'yes' }, 'online: expected a boolean'],
    [{ _id: [] }, '_id: expected a number, or text'],
  ])('are kept beside one that cannot be: %j', (bad, why) => {
    const text = typeof bad === 'string' ? bad : JSON.stringify(bad);
    for (const body of [`${text.slice(0, -1)},"n":1,"m":"x"}`, `{"n":1,"m":"x",${text.slice(1)}`]) {
      expect(parse(JSON.parse(body))).toEqual({ parameters: { n: 1, m: 'x' }, why: expect.stringContaining(why) });
    }
    expect(() => parse(JSON.parse(text))).toThrow(why);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test.each<[given: unknown, on: boolean]>([
    [true, true],
    [1, true],
    ['1', true],
    ['true', true],
    ['TRUE', true],
    ['ON', true],
    [' on ', true],
    [false, false],
    [0, false],
    ['0', false],
    ['False', false],
    ['off', false],
  ])('are booleans if the model says so, and so is `online`: %j', (on, value) => {
    expect(parse({ on }).parameters).toEqual({ on: value });
    expect(parseBatch({ online: on, n: 1 }, declared, NOW).messages[0]?.online).toBe(value);
  });
});
