/** BSON becomes the very JSON that JSON.stringify writes. */
import { describe, expect, test } from '@jest/globals';
import { BSON, type Document } from 'mongodb';
import { readBatch } from '../../../src/platform/mongo/bson/document-batch.js';
import { JsonWriter, toJson, writeJson } from '../../../src/platform/mongo/bson/json-writer.js';
import { findField, readObjectId } from '../../../src/platform/mongo/bson/reader.js';
import { fc, runsOf } from '../../support/runs.js';

const { Binary, BSONType, Code, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp } = BSON;

const expected = (bson: Uint8Array): string => JSON.stringify(BSON.deserialize(bson));
const json = (document: Document): string => toJson(BSON.serialize(document)).toString();

/** A document of one element, so that values can be had that the package never writes. */
function oneElement(type: number, name: string, value: Uint8Array): Buffer {
  const size = Buffer.alloc(4);
  const bson = Buffer.concat([size, Buffer.of(type), Buffer.from(`${name}\0`), value, Buffer.of(0)]);
  bson.writeInt32LE(bson.length);
  return bson;
}

/** An 8-byte value by the writer of Buffer that makes it. */
function eightBytes(write: (bytes: Buffer) => void): Buffer {
  const bytes = Buffer.alloc(8);
  write(bytes);
  return bytes;
}

const expectSame = (bson: Uint8Array): void => expect(toJson(bson).toString()).toBe(expected(bson));
const expectSameDouble = (value: number): void =>
  expectSame(
    oneElement(
      BSONType.double,
      'd',
      eightBytes((bytes) => bytes.writeDoubleLE(value)),
    ),
  );

const anyCodeUnit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));
const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: 'binary' }),
  fc.string({ unit: anyCodeUnit }),
  fc.string({ unit: fc.constantFrom('"', '\\', '\b', '\f', '\n', '\r', '\t', '\u0000', '\u001f', '\u007f', 'ä', '€') }),
);
// A name cannot hold a NUL; $ref makes a DBRef, and the package takes _bsontype for a marker of its own.
const name = text.map((value) => value.replaceAll('\0', '0')).filter((value) => !/^\$|^_bsontype$/.test(value));
const decimal = fc
  .tuple(fc.integer({ min: -2_000_000_000, max: 2_000_000_000 }), fc.integer({ min: 0, max: 12 }))
  .map(([digits, shift]) => digits / 10 ** shift);
const double = fc.oneof(fc.double(), fc.float(), fc.maxSafeInteger(), decimal);
const leaf = fc.oneof(
  text,
  double.map((value) => new Double(value)),
  fc.maxSafeInteger(),
  fc.integer().map((value) => new Int32(value)),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => Long.fromBigInt(value)),
  fc.maxSafeInteger().map((value) => Long.fromNumber(value)),
  fc.boolean(),
  fc.constant(null),
  fc.date({ noInvalidDate: false }),
  fc.uint8Array({ minLength: 12, maxLength: 12 }).map((bytes) => new ObjectId(bytes)),
);
const { document } = fc.letrec<{ document: Document; value: unknown }>((tie) => ({
  document: fc.dictionary(name, tie('value'), { maxKeys: 6, noNullPrototype: true }),
  value: fc.oneof({ maxDepth: 3 }, leaf, leaf, tie('document'), fc.array(tie('value'), { maxLength: 6 })),
}));

describe('toJson', () => {
  test('equals JSON.stringify of the deserialized document', () => {
    fc.assert(
      fc.property(document, (value) => expectSame(BSON.serialize(value))),
      { numRuns: runsOf(1_000) },
    );
  });

  test('writes every double in its shortest form', () => {
    fc.assert(fc.property(double, expectSameDouble), { numRuns: runsOf(5_000) });
    const edges = [0, -0, 0.5, -0.5, 1e-6, 1e-7, 1.5e-7, 9.999999e-7, 123456.7891234, 99_999_999.9999999, 0.1 + 0.2];
    const large = [1e8 - 1, 1e8, 1.7e15, 1e15 - 1, 2 ** 53 - 1, 2 ** 53, 2 ** 53 + 2, 1e21, 1e22, Number.MAX_VALUE];
    const special = [Number.NaN, Infinity, Number.MIN_VALUE, 5e-324, 2 ** -1022];
    for (const value of [...edges, ...large, ...special]) {
      expectSameDouble(value);
      expectSameDouble(-value);
    }
  });

  test('writes every integer around the powers of ten and of two', () => {
    const powers = [...Array.from({ length: 19 }, (_, n) => 10n ** BigInt(n)), 2n ** 31n, 2n ** 32n, 2n ** 53n];
    for (const value of [...powers, 2n ** 63n - 2n].flatMap((n) => [n - 1n, n, n + 1n, -n - 1n, -n, -n + 1n])) {
      expectSame(
        oneElement(
          BSONType.long,
          '',
          eightBytes((bytes) => bytes.writeBigInt64LE(value)),
        ),
      );
      expectSameDouble(Number(value));
      expectSame(BSON.serialize({ value: new Int32(Number(BigInt.asIntN(32, value))) }));
    }
  });

  test('writes every date of the calendar, and null for those beyond', () => {
    const edges = [0, 1, -1, 864e5, 864e5 - 1, -62_135_596_800_001, 253_402_300_800_000, 8.64e15, 8.64e15 + 1, 2 ** 60];
    const dates = fc.oneof(fc.bigInt({ min: -9n * 10n ** 15n, max: 9n * 10n ** 15n }), fc.constantFrom(-(2n ** 63n)));
    const check = (time: bigint) =>
      expectSame(
        oneElement(
          BSONType.date,
          'd',
          eightBytes((bytes) => bytes.writeBigInt64LE(time)),
        ),
      );
    for (const time of edges.flatMap((edge) => [BigInt(edge), -BigInt(edge)])) check(time);
    fc.assert(fc.property(dates, check), { numRuns: runsOf(1_000) });
  });

  test('omits undefined members, but writes null for undefined in an array', () => {
    expect(toJson(oneElement(BSONType.undefined, 'u', Buffer.alloc(0))).toString()).toBe('{}');
    const array = oneElement(BSONType.undefined, '0', Buffer.alloc(0));
    const bson = oneElement(BSONType.array, 'a', array);
    expect(toJson(bson).toString()).toBe('{"a":[null]}');
    expectSame(bson);
  });

  test('keeps the stored order of names that look like integers', () => {
    const inner = BSON.serialize(new Map(Object.entries({ b: 1, c: 2 })));
    const renamed = Buffer.from(inner);
    renamed[renamed.indexOf('c')] = '1'.charCodeAt(0);
    expect(toJson(renamed).toString()).toBe('{"b":1,"1":2}');
  });

  test('accepts a part of a larger buffer, and plain bytes as well as a Buffer', () => {
    const bson = BSON.serialize({ a: [1, { b: 'x' }] });
    const larger = Buffer.concat([Buffer.alloc(7, 0xff), bson, Buffer.alloc(7, 0xff)]);
    expect(toJson(larger.subarray(7, 7 + bson.length)).toString()).toBe('{"a":[1,{"b":"x"}]}');
    expect(toJson(new Uint8Array(bson)).toString()).toBe('{"a":[1,{"b":"x"}]}');
  });

  test('reserves enough space for the values that grow most', () => {
    for (const value of ['\u0001'.repeat(5_000), Array(5_000).fill(null), Array(5_000).fill(Long.MIN_VALUE)]) {
      expectSame(BSON.serialize({ value }));
    }
    expectSame(
      oneElement(
        BSONType.long,
        '',
        eightBytes((bytes) => bytes.writeBigInt64LE(-(2n ** 63n) + 1n)),
      ),
    );
  });

  test('returns bytes that later calls do not change', () => {
    const first = toJson(BSON.serialize({ first: 1 }));
    toJson(BSON.serialize({ second: 2 }));
    expect(first.toString()).toBe('{"first":1}');
  });

  test.each([
    ['binary', new Binary(Buffer.from('x'))],
    ['a regular expression', /x/],
    ['code', new Code('x')],
    ['Decimal128', Decimal128.fromString('1')],
    ['MinKey', new MinKey()],
    ['MaxKey', new MaxKey()],
    ['a timestamp', new Timestamp({ t: 1, i: 1 })],
  ])('throws a TypeError for %s', (_, value) => {
    expect(() => json({ value })).toThrow(TypeError);
    expect(() => json({ nested: [{ value }] })).toThrow(TypeError);
  });
});

describe('a corrupted document', () => {
  const attempts: ((bson: Uint8Array) => unknown)[] = [
    toJson,
    readBatch,
    readObjectId,
    (bson) => findField(bson, 'none', BSONType.object),
  ];
  const expectToEnd = (bson: Uint8Array): void => {
    for (const attempt of attempts) {
      try {
        attempt(bson);
      } catch (error) {
        expect([RangeError, TypeError]).toContain((error as Error).constructor);
      }
    }
  };

  test('yields a result or an error wherever a byte is changed', () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 4 });
    const cursor = document.map((value) => ({ firstBatch: [value], id: Long.ZERO, ns: 'a.b' }));
    fc.assert(
      fc.property(fc.oneof(document, cursor), changes, (value, bytes) => {
        const bson = Buffer.from(BSON.serialize(value));
        for (const [at, byte] of bytes) bson[at % bson.length] = byte;
        expectToEnd(bson);
      }),
      { numRuns: runsOf(2_000) },
    );
  });

  test('yields an error if it is truncated', () => {
    const bson = BSON.serialize({ _id: new ObjectId(), text: 'x', list: [1, 2.5], inner: { a: true } });
    for (let length = 0; length < bson.length; length++) {
      expect(() => toJson(bson.subarray(0, length))).toThrow(RangeError);
      expect(() => readObjectId(bson.subarray(0, length))).toThrow(RangeError);
    }
  });

  test.each([
    ['a document longer than its parent', oneElement(BSONType.object, 'a', Buffer.of(6, 0, 0, 0, 0))],
    ['a document of negative length', oneElement(BSONType.object, 'a', Buffer.of(0, 0, 0, 0x80, 0))],
    ['a document without terminator', oneElement(BSONType.object, 'a', Buffer.of(5, 0, 0, 0, 1))],
    ['an empty text without terminator', oneElement(BSONType.string, 'a', Buffer.of(0, 0, 0, 0, 0))],
    ['a text longer than its document', oneElement(BSONType.string, 'a', Buffer.of(9, 0, 0, 0, 0))],
    ['a number that is cut', oneElement(BSONType.double, 'a', Buffer.of(0, 0, 0, 0))],
  ])('throws a RangeError: %s', (_, bson) => {
    expect(() => toJson(bson)).toThrow(RangeError);
  });
});

describe('JsonWriter', () => {
  test('writes a list of documents', () => {
    const documents = Array.from({ length: 500 }, (_, n) => ({ n, text: 'x'.repeat(n) }));
    const writer = new JsonWriter(64);
    writer.raw('[\n');
    documents.forEach((value, n) => {
      if (n > 0) writer.raw('\n,\n');
      writer.document(BSON.serialize(value));
    });
    writer.raw('\n]\n');
    const length = writer.length;
    const written = writer.take();
    expect(written.length).toBe(length);
    expect(written.toString()).toBe(`[\n${documents.map((value) => JSON.stringify(value)).join('\n,\n')}\n]\n`);
  });

  test('starts over after each result, without changing earlier ones', () => {
    const writer = new JsonWriter();
    const taken = ['a', 'b'.repeat(10_000), 'c'].map((value) => {
      writer.document(BSON.serialize({ value }));
      const written = writer.take();
      expect(writer.length).toBe(0);
      return written;
    });
    expect(taken.map((written) => JSON.parse(written.toString()).value.length)).toEqual([1, 10_000, 1]);
    expect(writer.take().length).toBe(0);
  });

  test('joins the members of several documents', () => {
    const writer = new JsonWriter();
    const joined = (...documents: Document[]): string => {
      writer.raw('{');
      for (const value of documents) writer.members(BSON.serialize(value));
      writer.raw('}');
      return writer.take().toString();
    };
    expect(joined()).toBe('{}');
    expect(joined({}, {})).toBe('{}');
    expect(joined({ a: 1, b: [{}] })).toBe('{"a":1,"b":[{}]}');
    expect(joined({}, { a: 1 }, {}, { b: '{' }, { c: {} }, {})).toBe('{"a":1,"b":"{","c":{}}');
  });

  test('appends members after others', () => {
    const writer = new JsonWriter();
    writer.raw('{"a":1');
    writer.members(BSON.serialize({}));
    writer.members(BSON.serialize({ b: 2 }));
    writer.raw(',"c":');
    writer.document(BSON.serialize({ d: 3 }));
    writer.raw('}');
    expect(writer.take().toString()).toBe('{"a":1,"b":2,"c":{"d":3}}');
  });

  test('restores its state after an error', () => {
    const bad = BSON.serialize({ text: 'x', list: [1, new Binary(Buffer.from('x'))] });
    const writer = new JsonWriter();
    writer.raw('[');
    expect(() => writer.document(bad)).toThrow(TypeError);
    writer.raw('{');
    expect(() => writer.members(bad)).toThrow(TypeError);
    expect(writer.length).toBe(2);
    writer.members(BSON.serialize({ a: 1 }));
    writer.raw('}]');
    expect(writer.take().toString()).toBe('[{"a":1}]');
  });
});

test('discards what writeJson wrote before an error', () => {
  const bad = BSON.serialize({ bin: new Binary(Buffer.from('x')) });
  const write = (bson: Uint8Array) =>
    writeJson((writer) => {
      writer.raw('[');
      writer.document(bson);
      writer.raw(']');
    }).toString();
  expect(() => write(bad)).toThrow(TypeError);
  expect(write(BSON.serialize({ a: 1 }))).toBe('[{"a":1}]');
});

describe('findField and readObjectId', () => {
  const _id = new ObjectId();

  test('finds members by name and type without copying', () => {
    const bson = BSON.serialize({ pp: { a: 0 }, list: [1], _id, '': 0, p: { a: 1 } });
    const found = findField(bson, 'p', BSONType.object);
    expect(found && toJson(found).toString()).toBe('{"a":1}');
    expect(found?.buffer).toBe(bson.buffer);
    expect(findField(bson, 'list', BSONType.array)).toEqual(Buffer.from(BSON.serialize({ 0: 1 })));
    for (const absent of ['ppp', 'li', 'lists', 'a', 'P']) expect(findField(bson, absent, BSONType.object)).toBeNull();
    expect(findField(bson, 'p', BSONType.string)).toBeNull();
    expect(findField(BSON.serialize({}), 'p', BSONType.object)).toBeNull();
  });

  test('reads the _id at any place if it is an ObjectId', () => {
    expect(readObjectId(BSON.serialize({ _id }))).toBe(_id.toHexString());
    expect(readObjectId(BSON.serialize({ a: { _id: new ObjectId() }, b: 'x', _id }))).toBe(_id.toHexString());
    expect(readObjectId(BSON.serialize({ _id: 'x' }))).toBeNull();
    expect(readObjectId(BSON.serialize({ _idx: _id, x_id: _id }))).toBeNull();
  });
});

describe('readBatch', () => {
  const documents = [{ a: 1 }, {}, { b: [{ c: 'x' }] }];

  test.each(['firstBatch', 'nextBatch'])('reads %s', (batch) => {
    const cursorId = 2n ** 62n + 1n;
    const bson = BSON.serialize({ [batch]: documents, id: Long.fromBigInt(cursorId), ns: 'vigil.objäcts' });
    const read = readBatch(bson);
    expect(read).toMatchObject({ cursorId, namespace: 'vigil.objäcts' });
    expect(read.documents.map((value) => BSON.deserialize(value))).toEqual(documents);
    expect(read.documents.every((value) => value.buffer === bson.buffer)).toBe(true);
  });

  test('reads a reply that the driver left undecoded', () => {
    const cursor = { id: Long.ZERO, ns: 'a.b', postBatchResumeToken: { x: 1 }, firstBatch: documents };
    const reply = BSON.deserialize(BSON.serialize({ cursor, ok: 1 }), { raw: true });
    expect(readBatch(reply.cursor).documents.map((value) => toJson(value).toString())).toEqual(
      documents.map((value) => JSON.stringify(value)),
    );
  });

  test('reads more than ten documents', () => {
    const many = Array.from({ length: 1_234 }, (_, n) => ({ n }));
    const read = readBatch(BSON.serialize({ firstBatch: many, id: Long.ZERO, ns: 'a.b' }));
    expect(read.documents.map((value) => BSON.deserialize(value))).toEqual(many);
    expect(read.cursorId).toBe(0n);
  });

  test.each([
    {},
    { id: Long.ZERO, ns: 'a.b' },
    { firstBatch: [], id: 0, ns: 'a.b' },
    { firstBatch: [], id: Long.ZERO },
    { cursor: { firstBatch: [], id: Long.ZERO, ns: 'a.b' }, ok: 1 },
  ])('throws a TypeError for %j', (value) => {
    expect(() => readBatch(BSON.serialize(value))).toThrow(TypeError);
  });

  test('throws for an element that is not a document', () => {
    expect(() => readBatch(BSON.serialize({ firstBatch: ['x'], id: Long.ZERO, ns: 'a.b' })).documents).toThrow(Error);
  });
});
