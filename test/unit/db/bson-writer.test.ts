/** Documents as bytes: those of the driver's own serializer, but for names that mean something to it. */
import { describe, expect, test } from '@jest/globals';
import { Binary, BSON, type Document, ObjectId } from 'mongodb';
import { NewPacketKey, toPacketKey } from '../../../src/platform/mongo/bson/packet-key.js';
import { toBson } from '../../../src/platform/mongo/bson/writer.js';
import { fc, runsOf } from '../../support/runs.js';

const MOST = 16 * 1_024 * 1_024;

const name = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('toBSON', 'toJSON', 'toString', 'constructor', '$set', 'a.b', '', 'n'.repeat(33), 'é', '0', '10'),
);
const number = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.constantFrom(0, -0, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), -(2 ** 31) - 1, 1e308, 5e-324, Number.NaN, Infinity),
);
const leaf = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)) }),
  fc.string({ unit: 'grapheme', minLength: 30, maxLength: 40 }),
  number,
  fc.boolean(),
  fc.constantFrom(null, undefined),
  fc.date({ noInvalidDate: true }),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
);
const { document } = fc.letrec<{ document: Document; value: unknown }>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, leaf, tie('document'), fc.array(tie('value'), { maxLength: 4 })),
  document: fc.dictionary(
    name.filter((one) => !one.includes('\0')),
    tie('value'),
    { maxKeys: 6 },
  ),
}));

test('writes the same bytes as the driver for any document', () => {
  fc.assert(
    fc.property(document, (given) => {
      expect(toBson(given, MOST)?.toString('hex')).toBe(Buffer.from(BSON.serialize(given)).toString('hex'));
    }),
    { numRuns: runsOf(1_000) },
  );
});

test('writes the key of a packet as queries need it', () => {
  const own = new ObjectId();
  const object = new ObjectId();
  const wanted = BSON.serialize({ a: 1, _id: toPacketKey(own.toHexString(), object), b: 2 });
  expect(toBson({ a: 1, _id: new NewPacketKey(own, object), b: 2 }, MOST)).toEqual(Buffer.from(wanted));
});

test.each<unknown>([1, 'ObjectId', 'Binary', 'Long', 'Code', 'nothing', {}, [], true])(
  'stores a member named _bsontype, such as %j, like any other',
  (_bsontype) => {
    const given = { a: { _bsontype, id: 'x', list: [{ _bsontype }] } };
    expect(BSON.deserialize(toBson(given, MOST) as Buffer)).toEqual(given);
  },
);

describe('a document above the maximum size', () => {
  const documents: [what: string, given: Document][] = [
    ['a text', { text: 'x'.repeat(1_000) }],
    ['a text of other letters', { text: '車'.repeat(400) }],
    ['many members', Object.fromEntries(Array.from({ length: 100 }, (_, nth) => [`member-${nth}`, nth]))],
    ['a list', { list: Array.from({ length: 200 }, (_, nth) => nth) }],
    ['a large one', { text: 'x'.repeat(5_000_000) }],
    ['one of many large texts', { list: Array.from({ length: 50 }, () => '車'.repeat(65_536)) }],
  ];
  test.each(documents)('has no bytes, and one that is just as large as it may be has: %s', (_, given) => {
    const { length } = BSON.serialize(given);
    expect(toBson(given, length)?.length).toBe(length);
    expect(toBson(given, length - 1)).toBeNull();
    expect(toBson({ a: 1 }, 100)?.toString('hex')).toBe(Buffer.from(BSON.serialize({ a: 1 })).toString('hex'));
  });
});

describe('refuses, and writes the next one all the same,', () => {
  test.each<[what: string, given: Document]>([
    ['a NUL in a name', { 'a\0b': 1 }],
    ['a NUL in a long name', { [`${'n'.repeat(50)}\0`]: 1 }],
    ['a function', { a: { b: () => undefined } }],
    ['a BigInt', { a: 1n }],
    ['a symbol', { a: Symbol.iterator }],
    ['an object of a class', { a: new Map() }],
    ['bytes', { a: Buffer.from('x') }],
    ['binary data that is no key of a packet', { a: new Binary(Buffer.alloc(24)) }],
    ["another of the driver's types", { a: BSON.Long.fromNumber(1) }],
  ])('is refused: %s', (_, given) => {
    expect(() => toBson(given, MOST)).toThrow(TypeError);
    expect(BSON.deserialize(toBson({ a: [1] }, MOST) as Buffer)).toEqual({ a: [1] });
  });
});
