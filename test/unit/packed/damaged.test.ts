/** Damaged buckets: a clear error for their interval, never other packets, and never more memory than a bucket may take. */
import { crc32 } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import { BSON } from 'mongodb';
import { ByteReader, DamageError } from '../../../src/packed/bytes.js';
import { type Bucket, FORMAT } from '../../../src/packed/head.js';
import { pack } from '../../../src/packed/pack.js';
import { readShapes, ShapeCollector } from '../../../src/packed/shapes.js';
import { BucketReader, DamagedBucketError, unpack } from '../../../src/packed/unpack.js';
import { BSON_TYPES } from '../../../src/platform/mongo/bson/reader.js';
import { fc, runsOf } from '../../support/runs.js';
import { rowsOfAnyKind, toPacketRow } from './rows.js';

const rows = Array.from({ length: 60 }, (_, index) =>
  toPacketRow(index, {
    speed: Math.round(Math.sin(index / 7) * 400) / 10,
    wave: Math.sin(index),
    state: `s${index % 3}`,
  }),
);
const bucket = pack(rows);
const CLEAR = /^the packed history from \S+ to \S+ is damaged: \S/;

/** Where a bucket is changed: a part, a place in it, and how. */
const changes = fc.record({
  part: fc.nat(),
  place: fc.nat(),
  how: fc.oneof(
    fc.integer({ min: 1, max: 255 }).map((mask) => (bytes: Buffer, place: number): Buffer => {
      const changed = Buffer.from(bytes);
      changed[place] = (changed[place] as number) ^ mask;
      return changed;
    }),
    fc.constant((bytes: Buffer, place: number): Buffer => bytes.subarray(0, place)),
    fc.uint8Array({ minLength: 1, maxLength: 9 }).map(
      (added) =>
        (bytes: Buffer, place: number): Buffer =>
          Buffer.concat([bytes.subarray(0, place), added, bytes.subarray(place)]),
    ),
  ),
});

type Change = { part: number; place: number; how(bytes: Buffer, place: number): Buffer };

/** The bucket with one of its parts changed; the head without its checksum. */
function change({ head, columns, ...interval }: Bucket, { part, place, how }: Change): Bucket {
  const nth = part % (columns.size + 1);
  if (nth === columns.size) {
    const body = head.subarray(0, -4);
    return { ...interval, columns, head: Buffer.concat([how(body, place % body.length), head.subarray(-4)]) };
  }
  const [name, bytes] = [...columns][nth] as [string, Buffer];
  return { ...interval, head, columns: new Map(columns).set(name, how(bytes, place % bytes.length)) };
}

/** Makes the checksums right again, so that only the checks behind them are left. */
function sign(original: Bucket, { head, columns, ...interval }: Bucket): Bucket {
  let body = Buffer.from(head.subarray(0, -4));
  for (const { name, crc } of new BucketReader(original).head.columns) {
    const sum = Buffer.alloc(4);
    sum.writeUInt32LE(crc);
    const at = body.indexOf(sum);
    if (at !== -1) body.writeUInt32LE(crc32(columns.get(name) as Buffer), at);
  }
  const sum = Buffer.alloc(4);
  sum.writeUInt32LE(crc32(body));
  body = Buffer.concat([body, sum]);
  return { ...interval, columns, head: body };
}

const read = (damaged: Bucket): Buffer[] | Error => {
  try {
    return unpack(damaged);
  } catch (error) {
    return error as Error;
  }
};

describe('damage', () => {
  test('is found wherever a bucket is changed or cut', () => {
    fc.assert(
      fc.property(changes, (one) => {
        const found = read(change(bucket, one));
        expect(found).toBeInstanceOf(DamagedBucketError);
        expect((found as Error).message).toMatch(CLEAR);
      }),
      { numRuns: runsOf(5_000) },
    );
  });

  test('never fails in another way behind right checksums, and takes bounded memory', () => {
    fc.assert(
      fc.property(rowsOfAnyKind, fc.array(changes, { minLength: 1, maxLength: 8 }), (some, all) => {
        const original = pack(some);
        const signed = sign(original, all.reduce(change, original));
        const found = read(signed);
        if (found instanceof Error) {
          // Any error becomes one that names the interval: what was noticed is its cause.
          expect(found).toBeInstanceOf(DamagedBucketError);
          expect(found.cause).toBeInstanceOf(DamageError);
          return;
        }
        const { bytes, rows: count } = new BucketReader(signed).head;
        expect(bytes).toBeLessThanOrEqual(FORMAT.bytes);
        expect(found.map((row) => row.readInt32LE())).toEqual(found.map(({ length }) => length));
        expect([found.length, found.reduce((sum, { length }) => sum + length, 0)]).toEqual([count, bytes]);
      }),
      { numRuns: runsOf(1_000) },
    );
  });

  test('is found where a 64-bit integer is no whole number any more', () => {
    const original = pack(rows.map((_, index) => toPacketRow(index, { count: BSON.Long.fromNumber(7 * index + 1) })));
    const column = Buffer.from(original.columns.get('count') as Buffer);
    // Stored, of values, of one kind, which are decimals of no digits.
    expect([...column.subarray(0, 6)]).toEqual([0, 0, 1, BSON_TYPES.INT64, 1, 0]);
    column[5] = 1;
    const found = read(sign(original, { ...original, columns: new Map(original.columns).set('count', column) }));
    expect(found).toBeInstanceOf(DamagedBucketError);
    expect((found as Error).cause).toBeInstanceOf(DamageError);
  });

  test.each<[string, Bucket]>([
    ['an empty head', { ...bucket, head: Buffer.alloc(0) }],
    ['another interval', { ...bucket, toMs: bucket.toMs + 1 }],
    [
      'a column of another bucket',
      {
        ...bucket,
        columns: new Map(bucket.columns).set('speed', pack(rows.toReversed()).columns.get('speed') as Buffer),
      },
    ],
    [
      "two columns in each other's place",
      {
        ...bucket,
        columns: new Map(bucket.columns)
          .set('speed', bucket.columns.get('wave') as Buffer)
          .set('wave', bucket.columns.get('speed') as Buffer),
      },
    ],
  ])('is found in a bucket with %s', (_title, damaged) => {
    expect(() => unpack(damaged)).toThrow(DamagedBucketError);
  });

  test('leaves the statistics and the other columns readable', () => {
    const reader = new BucketReader({ ...bucket, columns: new Map(bucket.columns).set('wave', Buffer.of(1, 2, 3)) });
    expect(reader.readField('speed')?.rows).toHaveLength(rows.length);
    expect(() => reader.readField('wave')).toThrow(/"wave"/);
  });

  test('tells that a newer version is unknown', () => {
    const body = Buffer.from(bucket.head.subarray(0, -4));
    body[0] = 9;
    const sum = Buffer.alloc(4);
    sum.writeUInt32LE(crc32(body));
    expect(() => new BucketReader({ ...bucket, head: Buffer.concat([body, sum]) })).toThrow(
      /version 9 .*newer release/,
    );
  });

  // A few bytes could otherwise stand for thousands of fields in thousands of packets.
  test.each([
    ['one packet', 1, 2_000],
    ['all packets together', 1_000, 10],
  ])('refuses %s with more fields than bytes', (_title, rowCount, fieldCount) => {
    const shapes = new ShapeCollector();
    const shape = Array.from({ length: fieldCount }, (_, column) => column);
    for (let row = 0; row < rowCount; row++) shapes.add(shape);
    const read = (bytes: number) =>
      readShapes(new ByteReader(shapes.finish()), { rows: rowCount, columns: 2_000, bytes });
    expect(read(rowCount * fieldCount * 2).places).toHaveLength(rowCount);
    expect(() => read(rowCount * fieldCount)).toThrow(DamageError);
  });
});
