/** The packed form of packets: every byte comes back, columns and statistics can be read alone, and damage is found. */
import { describe, expect, test } from '@jest/globals';
import { BSON } from 'mongodb';
import { isPackable, pack } from '../../../src/packed/pack.js';
import { BucketReader, unpack } from '../../../src/packed/unpack.js';
import { fc, runsOf } from '../../support/runs.js';
import { OBJECT_ID, rowsOfAnyKind, START_MS, toPacketRow, toRow, withDouble } from './rows.js';

const { Double, Int32, Long } = BSON;

const hexOf = (rows: readonly Buffer[]): string[] => rows.map((row) => row.toString('hex'));
const numbersIn = (reader: BucketReader, name: string): number[] => {
  const values = reader.readField(name)?.values;
  return values !== undefined && 'toNumbers' in values ? Array.from(values.toNumbers()) : [];
};

describe('packets come back', () => {
  test('gives back every byte of arbitrary packets, in their order', () => {
    fc.assert(
      fc.property(rowsOfAnyKind, (rows) => {
        expect(rows.every(isPackable)).toBe(true);
        expect(hexOf(unpack(pack(rows)))).toEqual(hexOf(rows));
      }),
      { numRuns: runsOf(2_000) },
    );
  });

  test.each<[string, unknown[]]>([
    ['integers', [1, 2, 3, 2_147_483_647, -2_147_483_648]],
    ['negative zero beside zero', [0, -0, 0, -0]],
    ['doubles of whole numbers', [new Double(5), 5, new Double(-7), new Double(0)]],
    [
      '64-bit integers',
      [Long.fromNumber(5), Long.MAX_VALUE, Long.MIN_VALUE, new Int32(5), Long.fromString('9007199254740993')],
    ],
    ['decimals with one number of 17 digits', [21.5, 21.6, 0.1 + 0.2, 21.7, 1 / 3]],
    ['single precision', [25.2, 25.3, 25.4].map(Math.fround)],
    ['decimals beyond what is exact', [1e22, 1e300, 123456789.12345679, 5e-324, 4503599627370497]],
    ['infinities', [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1]],
    ['null, absence and undefined', [null, undefined, 1, null]],
    ['numbers and texts in turns', [1, '1', 1.5, '1.5', true, 'true']],
    ['nested values', [{ a: [1, { b: -0 }] }, [], {}, [[null]]]],
    ['one value a thousand times', Array.from({ length: 1_000 }, () => 48.1351253)],
    ['outliers among small steps', Array.from({ length: 300 }, (_, i) => (i % 97 === 0 ? 1e12 + i : i * 0.25))],
  ])('gives back %s', (_title, values) => {
    const rows = values.map((value, index) => toPacketRow(index, { value }));
    expect(hexOf(unpack(pack(rows)))).toEqual(hexOf(rows));
  });

  test('gives back the bits of each NaN', () => {
    const rows = [1, 2, 3].map((nth) =>
      withDouble(toPacketRow(nth, { value: 0.5 }), 'value', [
        nth,
        0,
        0,
        0,
        0,
        nth,
        0xf0 + nth,
        nth === 2 ? 0xff : 0x7f,
      ]),
    );
    expect(hexOf(unpack(pack(rows)))).toEqual(hexOf(rows));
  });

  test('gives back packets whose fields differ in order and number', () => {
    const rows = [{ a: 1, b: 2 }, { b: 2, a: 1 }, {}, { c: 3, a: 1 }].map((fields, index) =>
      toPacketRow(index, fields),
    );
    expect(hexOf(unpack(pack(rows)))).toEqual(hexOf(rows));
  });
});

describe('what is packed', () => {
  test.each([
    ['without a time', toRow({ _id: 1 })],
    ['with a time that is no whole number', toRow({ time: 1.5 })],
    ['with a time as text', toRow({ time: '2026' })],
    ['with a time beyond exact numbers', toRow({ time: 2 ** 60 })],
    [
      'with the same name twice',
      Buffer.concat([Buffer.from([25, 0, 0, 0]), toRow({ time: 1 }).subarray(4, -1), toRow({ time: 1 }).subarray(4)]),
    ],
    [
      'with a name that is no text',
      Buffer.from(toRow({ time: 1, aa: 1 }).toString('latin1').replace('aa', '\xff\xfe'), 'latin1'),
    ],
    ['that ends early', toRow({ time: 1 }).subarray(0, -2)],
    [
      'of a type that BSON has not',
      Buffer.from(toRow({ time: 1, aa: 1 }).toString('latin1').replace('\x10aa', '\x50aa'), 'latin1'),
    ],
    ['that is empty', Buffer.alloc(0)],
  ])('leaves out a document %s', (_title, row) => {
    expect(isPackable(row)).toBe(false);
  });

  test('refuses no packets, and packets without a time', () => {
    expect(() => pack([])).toThrow(RangeError);
    expect(() => pack([toRow({ time: 1 }), toRow({ value: 1 })])).toThrow(RangeError);
  });
});

describe('reading a part', () => {
  const rows = [
    { speed: 10.5, isOn: true },
    { isOn: false, state: 'idle' },
    { speed: 9, isOn: true, state: null },
    { speed: 'fast' },
  ].map((fields, index) => toPacketRow(index, fields));
  const bucket = pack(rows);

  test('reads a column without the others', () => {
    const columns = new Map([...bucket.columns].filter(([name]) => name === 'speed'));
    const reader = new BucketReader({ ...bucket, columns });
    expect(Array.from(reader.readField('speed')?.rows ?? [])).toEqual([0, 2, 3]);
    expect(numbersIn(reader, 'speed')).toEqual([10.5, 9, Number.NaN]);
    expect(reader.readField('pressure')).toBeNull();
    expect(() => reader.readRows()).toThrow(
      /2026-01-01T00:00:00.000Z to 2026-01-01T00:00:03.000Z is damaged: .*missing/,
    );
  });

  test('reads the statistics without any column', () => {
    const { head } = new BucketReader({ ...bucket, columns: new Map() });
    const statistics = new Map(head.columns.map((column) => [column.name, column.statistics]));
    const tmin = START_MS + 2_000;
    expect(statistics.get('speed')).toEqual({
      values: 3,
      numbers: { n: 2, sum: 19.5, min: 9, tmin, max: 10.5, tmax: START_MS, first: 10.5, last: 9 },
    });
    expect(statistics.get('isOn')).toEqual({
      values: 3,
      numbers: { n: 3, sum: 2, min: 0, tmin: START_MS + 1_000, max: 1, tmax: START_MS, first: 1, last: 1 },
    });
    expect(statistics.get('state')).toEqual({ values: 1, numbers: null });
    expect(statistics.get('time')).toBeNull();
    expect(head).toMatchObject({ rows: 4, fromMs: START_MS, toMs: START_MS + 3_000 });
  });

  test('counts in its statistics what the packets have', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.double(), fc.boolean(), fc.constant('x')), { minLength: 1 }), (values) => {
        const reader = new BucketReader(pack(values.map((value, index) => toPacketRow(index, { value }))));
        const found = reader.head.columns.find(({ name }) => name === 'value')?.statistics;
        const numbers = values.map((value) => (typeof value === 'string' ? Number.NaN : Number(value)));
        const known = numbers.filter((number) => !Number.isNaN(number));
        const least = Math.min(...known);
        expect(found?.values).toBe(values.length);
        expect(found?.numbers?.n ?? 0).toBe(known.length);
        if (known.length === 0) return;
        expect(found?.numbers).toMatchObject({ first: known[0], last: known.at(-1) });
        expect([found?.numbers?.min, found?.numbers?.max].map((number) => (number ?? 0) + 0)).toEqual([
          least + 0,
          Math.max(...known) + 0,
        ]);
        expect(found?.numbers?.tmin).toBe(START_MS + numbers.findIndex((number) => number + 0 === least + 0) * 1_000);
      }),
      { numRuns: runsOf(1_000) },
    );
  });

  test.each([
    [
      'given by the service',
      (index: number) => `6955${'0'.repeat(4)}aabbccddee${(index * 997).toString(16).padStart(6, '0')}`,
    ],
    [
      'chosen by the device',
      (index: number) =>
        BSON.ObjectId.createFromTime(index * 7919)
          .toHexString()
          .slice(0, 8)
          .repeat(3),
    ],
  ])('finds a packet by an _id %s, without its other fields', (_title, idOf) => {
    const ids = Array.from({ length: 500 }, (_, index) => idOf(index));
    const packets = ids.map((id, index) => {
      const row = toPacketRow(index, { speed: index });
      row.write(id, row.indexOf(Buffer.from([0x05, 0x5f, 0x69, 0x64, 0])) + 10, 'hex');
      return row;
    });
    const packed = pack(packets);
    const columns = new Map(['_id', '_ts', 'time'].map((name) => [name, packed.columns.get(name) as Buffer]));
    const reader = new BucketReader({ ...packed, columns });
    expect(ids.map((id) => reader.findPacket(Buffer.from(id, 'hex')))).toEqual(ids.map((_, index) => index));
    for (const absent of ['f'.repeat(24), '0'.repeat(24), `${ids[3]?.slice(12)}${ids[4]?.slice(0, 12)}`]) {
      if (!ids.includes(absent)) expect(reader.findPacket(Buffer.from(absent, 'hex'))).toBe(-1);
    }
  });

  test('finds no packet by the _id of a document that is no packet', () => {
    const reader = new BucketReader(pack([toRow({ _id: OBJECT_ID, time: 1 }), toRow({ _id: 'a', time: 2 })]));
    expect(reader.findPacket(Buffer.from(OBJECT_ID.id))).toBe(-1);
  });
});
