/** Packets as they are stored, for tests of their packed form: those of the service, and whatever else BSON can hold. */
import { BSON } from 'mongodb';
import { toPacketKey } from '../../../src/platform/mongo/bson/packet-key.js';
import { fc } from '../../support/runs.js';

const { Binary, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp } = BSON;

export const OBJECT_ID = new ObjectId('65a000000000000000000001');
export const START_MS = Date.UTC(2026, 0, 1);

export const toRow = (document: object): Buffer => Buffer.from(BSON.serialize(document, { ignoreUndefined: false }));

/** A packet as the service stores it. */
export function toPacketRow(index: number, fields: object, timeMs = START_MS + index * 1_000): Buffer {
  const id = (0x66000000 + index).toString(16).padEnd(16, 'a') + index.toString(16).padStart(8, '0');
  return toRow({
    _id: toPacketKey(id, OBJECT_ID),
    _ts: timeMs * 1_000 + 40_000 + ((index * 7919) % 5_000),
    time: timeMs,
    online: true,
    _oid: OBJECT_ID,
    id: 'press-7',
    _gid: OBJECT_ID,
    ...fields,
  });
}

/** Bytes that no driver writes, in place of the first double of this row. */
export function withDouble(row: Buffer, name: string, bytes: readonly number[]): Buffer {
  const changed = Buffer.from(row);
  changed.set(bytes, changed.indexOf(Buffer.from(`\x01${name}\0`, 'latin1')) + name.length + 2);
  return changed;
}

const NAMES = [
  'speed',
  'temperature',
  'état',
  'naïve 名',
  'a.b',
  '$x',
  'messageId',
  '__proto__',
  '',
  'deviceTime',
  '0',
];
const bytesOf = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });

/** Values of every type that the driver writes. */
const values = fc.letrec((tie) => ({
  simple: fc.oneof(
    fc.double(),
    fc.double({ min: -200, max: 200, noNaN: true }).map((value) => Math.round(value * 10) / 10),
    fc.float().map((value) => new Double(value)),
    fc.integer(),
    fc.constantFrom(-0, 0, 1, Number.NaN, Number.POSITIVE_INFINITY, Number.MIN_VALUE, 2 ** 53, -(2 ** 53), 2 ** 52),
    fc.integer().map((value) => new Double(value)),
    fc.integer().map((value) => new Int32(value)),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => Long.fromBigInt(value)),
    fc.integer().map((value) => Long.fromNumber(value)),
    fc.boolean(),
    fc.constant(null),
    fc.constant(undefined),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('', 'on', 'off', 'stand\0by', '漢字', '🚚'),
    fc.date({ noInvalidDate: true }),
    bytesOf(12).map((bytes) => new ObjectId(bytes)),
    fc.uint8Array({ maxLength: 40 }).map((bytes) => new Binary(bytes, 0)),
    bytesOf(24).map((bytes) => new Binary(bytes, 0x80)),
    fc.constantFrom(/a.b/i, new MinKey(), new MaxKey(), Timestamp.fromNumber(7), Decimal128.fromString('1.50')),
    fc.constant(new BSON.Code('function () {}')),
    fc.constant(new BSON.Code('x', { x: 1 })),
    fc.constant(new BSON.BSONSymbol('symbol')),
    fc.constant(new BSON.DBRef('objects', OBJECT_ID)),
  ),
  nested: fc.oneof(
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom('x', 'y', 'ö'), tie('value'), { maxKeys: 3 }),
  ),
  value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, tie('simple'), tie('nested')),
})).value;

/** Fields in any order; a name in lower case is in many packets. */
const fields = fc
  .uniqueArray(fc.tuple(fc.oneof(fc.constantFrom(...NAMES), fc.string({ maxLength: 3 })), values), {
    selector: ([name]) => name,
    maxLength: 7,
  })
  .map((entries) => entries.filter(([name]) => !name.includes('\0')));

/** Keys of packets: given by the service, chosen by devices, and such as were never written by either. */
const ids = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 2 ** 24 - 1 }).map((nth) => `69550000aabbccddee${hex(nth, 6)}`) },
  { weight: 3, arbitrary: bytesOf(12).map((bytes) => Buffer.from(bytes).toString('hex')) },
  { weight: 1, arbitrary: fc.constant(null) },
);
const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');

const times = fc.oneof(
  fc.integer({ min: START_MS, max: START_MS + 100_000 }),
  fc.integer({ min: 0, max: 4_000_000_000_000 }),
  fc.constantFrom(-1, 0, 2 ** 52 - 1, 1 - 2 ** 52),
);
const stamps = fc.oneof(
  fc.integer({ min: START_MS * 1_000, max: (START_MS + 100_000) * 1_000 }),
  fc.constantFrom<unknown>(null, 'late', 1.5, 2 ** 53, Number.NaN),
);

/** A document with a `time`, whose fields come in any order. */
const anyRow = fc.tuple(ids, times, stamps, fields, fc.nat()).map(([id, time, stamp, entries, turn]) => {
  const all: [string, unknown][] = [
    ['_id', id === null ? OBJECT_ID : toPacketKey(id, OBJECT_ID)],
    ['_ts', stamp],
    ['time', time],
    ...entries.filter(([name]) => !['_id', '_ts', 'time'].includes(name)),
  ];
  const turned = turn % 4 === 0 ? [...all.slice(turn % all.length), ...all.slice(0, turn % all.length)] : all;
  return toRow(new Map(turned));
});

/** Packets of a device, with the same fields in most of them. */
const usualRows = fc
  .tuple(fc.integer({ min: 1, max: 400 }), fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 5 }), fc.nat())
  .map(([count, names, seed]) =>
    Array.from({ length: count }, (_, index) => {
      const entries = names
        .filter((_name, nth) => (index * 31 + nth * 7 + seed) % 29 !== 0)
        .map((name, nth): [string, unknown] => [name, usualValue(index, nth + seed)]);
      return toPacketRow(index, Object.fromEntries(entries.filter(([name]) => name !== '__proto__')));
    }),
  );

function usualValue(index: number, form: number): unknown {
  const wave = Math.sin(index / 9 + form) * 40;
  switch (form % 6) {
    case 0:
      return Math.round(wave * 10) / 10;
    case 1:
      return Math.fround(Math.round(wave * 100) / 100);
    case 2:
      return wave;
    case 3:
      return index % 17 === 0 ? `step ${index % 5}` : 'idle';
    case 4:
      return wave > 0;
    default:
      return Math.round(wave);
  }
}

export const rowsOfAnyKind = fc.oneof(fc.array(anyRow, { minLength: 1, maxLength: 40 }), usualRows);
