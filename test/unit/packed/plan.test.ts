/** The plan of packing: which rows become which bucket, checked on a model of an object's history that is packed again and again. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { type BucketSpan, type PlacedRow, packEvenly, planPacking } from '../../../src/packed/plan.js';
import { unpack } from '../../../src/packed/unpack.js';
import { fc, runsOf } from '../../support/runs.js';
import { START_MS, toPacketRow } from './rows.js';

const FULL = LIMITS.bucketPackets;
const DAY_MS = 86_400_000;

interface Row extends PlacedRow {
  readonly nth: number;
  packed: number;
}

interface Span extends BucketSpan {
  readonly rows: readonly Row[];
}

const isBefore = (one: Row, other: Row): number => one.timeMs - other.timeMs || one.stampUs - other.stampUs;

function toSpan(rows: readonly Row[]): Span {
  const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
  return { from: rows[0] as Row, to: rows.at(-1) as Row, packets: rows.length, bytes, rows };
}

/** The rows and buckets of an object. */
class History {
  rows: Row[] = [];
  spans: Span[] = [];

  add(count: number, timeOf: (nth: number) => number, arrivalOf = timeOf, bytes = 180): void {
    for (let nth = 0; nth < count; nth++) {
      this.rows.push({
        nth: this.rows.length,
        timeMs: timeOf(nth),
        stampUs: arrivalOf(nth) * 1_000 + (nth % 999),
        bytes,
        packed: 0,
      });
    }
    this.rows.sort(isBefore);
  }

  /** Carries out one plan, of at most so many rows; returns how many steps it had. */
  pack(nowMs: number, most = Number.POSITIVE_INFINITY): number {
    const rows = this.rows.slice(0, most);
    const steps = planPacking({
      rows,
      areAll: rows.length === this.rows.length,
      spans: this.spans,
      nowMs,
      packAfterMs: DAY_MS,
    });
    for (const { rows: added, replaced } of steps) {
      const gone = new Set(added);
      this.rows = this.rows.filter((row) => !gone.has(row));
      this.spans = this.spans.filter((span) => span !== replaced);
      const all = [...(replaced?.rows ?? []), ...added].sort(isBefore);
      for (const row of all) row.packed++;
      const parts = Math.ceil(all.length / FULL);
      const each = Math.ceil(all.length / parts);
      for (let at = 0; at < all.length; at += each) this.spans.push(toSpan(all.slice(at, at + each)));
    }
    this.spans.sort((one, other) => isBefore(one.rows[0] as Row, other.rows[0] as Row));
    return steps.length;
  }

  get packets(): number[] {
    return this.spans.map(({ packets }) => packets);
  }
}

const every =
  (ms: number, startMs = START_MS) =>
  (nth: number): number =>
    startMs + nth * ms;

describe('planPacking', () => {
  test('fills buckets with rows that are old, and leaves the others', () => {
    const history = new History();
    history.add(3_500, every(60_000));
    history.pack(START_MS + 2_400 * 60_000 + DAY_MS);
    expect(history.packets).toEqual([FULL, FULL]);
    expect(history.rows).toHaveLength(1_500);
  });

  test('leaves rows that have just arrived, whatever their time', () => {
    const history = new History();
    history.add(2_000, every(1_000), () => START_MS + 30 * DAY_MS);
    expect(history.pack(START_MS + 30 * DAY_MS + 1_000)).toBe(0);
    history.pack(START_MS + 31 * DAY_MS + 1_000);
    expect(history.packets).toEqual([FULL, FULL]);
  });

  test('packs a remainder once it has waited as long again, and adds to it later', () => {
    const history = new History();
    history.add(300, every(1_000));
    expect(history.pack(START_MS + 1.5 * DAY_MS)).toBe(0);
    history.pack(START_MS + 2 * DAY_MS);
    expect(history.packets).toEqual([300]);
    history.add(140, every(1_000, START_MS + DAY_MS));
    expect(history.pack(START_MS + 9 * DAY_MS)).toBe(0);
    history.add(20, every(1_000, START_MS + 2 * DAY_MS));
    history.pack(START_MS + 9 * DAY_MS);
    expect(history.packets).toEqual([460]);
    history.add(900, every(1_000, START_MS + 3 * DAY_MS));
    history.pack(START_MS + 4.2 * DAY_MS);
    expect(history.packets).toEqual([FULL]);
    expect(history.rows).toHaveLength(360);
  });

  test('leaves a few rows for ever', () => {
    const history = new History();
    history.add(FULL / 10 - 1, every(1_000));
    expect(history.pack(START_MS + 1_000 * DAY_MS)).toBe(0);
  });

  test('packs a bucket again when enough late rows lie in it', () => {
    const history = new History();
    history.add(2_000, every(1_000));
    history.pack(START_MS + 2 * DAY_MS);
    history.add(99, every(1_000, START_MS + 500));
    expect(history.pack(START_MS + 9 * DAY_MS)).toBe(0);
    history.add(1, every(1_000, START_MS + 300_500));
    history.pack(START_MS + 9 * DAY_MS);
    expect(history.packets).toEqual([550, 550, FULL]);
    expect(history.rows).toHaveLength(0);
  });

  test('packs what lies between two buckets without touching the later one', () => {
    const history = new History();
    history.add(1_000, every(1_000));
    history.add(1_000, every(1_000, START_MS + 2 * DAY_MS));
    history.pack(START_MS + 4 * DAY_MS);
    history.add(250, every(1_000, START_MS + DAY_MS));
    history.pack(START_MS + 9 * DAY_MS);
    expect(history.packets).toEqual([FULL, 250, FULL]);
  });

  test('does not take the end of what was read for the end of the rows', () => {
    const history = new History();
    history.add(1_300, every(1_000));
    history.pack(START_MS + 9 * DAY_MS, 1_200);
    expect(history.packets).toEqual([FULL]);
    history.pack(START_MS + 9 * DAY_MS, 1_200);
    expect(history.packets).toEqual([FULL, 300]);
  });

  test('closes a bucket when its packets are large', () => {
    const history = new History();
    history.add(100, every(1_000), every(1_000), LIMITS.bucketBytes / 20);
    history.pack(START_MS + 2 * DAY_MS);
    expect(history.packets).toEqual([20, 20, 20, 20, 20]);
  });

  test('packs a packet of an object that sends rarely a few times at most', () => {
    const history = new History();
    for (let day = 0; day < 200; day++) {
      history.add(24, every(3_600_000, START_MS + day * DAY_MS));
      history.pack(START_MS + (day + 1) * DAY_MS);
    }
    const packed = history.spans.flatMap(({ rows }) => rows);
    expect(Math.max(...packed.map((row) => row.packed))).toBeLessThanOrEqual(7);
    expect(history.packets.slice(0, -1).every((packets) => packets === FULL)).toBe(true);
    expect(history.rows.length).toBeLessThan(FULL / 2);
  });

  test('keeps every packet once, and in order', () => {
    const passes = fc.array(
      fc.record({
        count: fc.integer({ min: 0, max: 1_200 }),
        stepMs: fc.constantFrom(0, 1_000, 60_000, 3_600_000),
        backMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 40 * DAY_MS })),
        waitMs: fc.integer({ min: 0, max: 5 * DAY_MS }),
        most: fc.constantFrom(500, 3_000, 100_000),
      }),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(passes, (all) => {
        const history = new History();
        let nowMs = START_MS;
        let added = 0;
        for (const { count, stepMs, backMs, waitMs, most } of all) {
          const startMs = nowMs - backMs;
          const arrivalMs = nowMs;
          history.add(count, every(stepMs, startMs), () => arrivalMs);
          added += count;
          nowMs += waitMs;
          history.pack(nowMs, most);
          const packed = history.spans.flatMap(({ rows }) => rows);
          expect(packed.length + history.rows.length).toBe(added);
          expect(new Set([...packed, ...history.rows]).size).toBe(added);
          // In one order over all buckets: none overlaps another one.
          expect(packed.every((row, nth) => nth === 0 || isBefore(packed[nth - 1] as Row, row) <= 0)).toBe(true);
          expect(history.packets.every((packets) => packets <= FULL)).toBe(true);
          expect(packed.every((row) => row.timeMs <= nowMs - DAY_MS && row.stampUs <= (nowMs - DAY_MS) * 1_000)).toBe(
            true,
          );
        }
        // After a while nothing is left to do but for a few rows.
        nowMs += 100 * DAY_MS;
        for (let turn = 0; turn < 20 && history.pack(nowMs) > 0; turn++);
        expect(history.pack(nowMs)).toBe(0);
      }),
      { numRuns: runsOf(300) },
    );
  });
});

describe('packEvenly', () => {
  const rowsOf = (count: number, fieldsOf: (nth: number) => object = (nth) => ({ speed: nth })): Buffer[] =>
    Array.from({ length: count }, (_, nth) => toPacketRow(nth, fieldsOf(nth)));

  test.each<[string, Buffer[], number[]]>([
    ['what fits', rowsOf(FULL), [FULL]],
    ['a few too many', rowsOf(FULL + 101), [551, 550]],
    [
      'too many fields',
      rowsOf(600, (nth) => Object.fromEntries(Array.from({ length: 5 }, (_, at) => [`p${nth}-${at}`, 1]))),
      [300, 300],
    ],
    ['too many bytes', rowsOf(12, () => ({ text: 'x'.repeat(LIMITS.bucketBytes / 4) })), [4, 4, 4]],
    ['one large packet', rowsOf(1, () => ({ text: 'x'.repeat(3 * LIMITS.bucketBytes) })), [1]],
  ])('packs %s', (_title, rows, packets) => {
    const unpacked = packEvenly(rows).map(unpack);
    expect(unpacked.map(({ length }) => length)).toEqual(packets);
    expect(Buffer.concat(unpacked.flat()).equals(Buffer.concat(rows))).toBe(true);
  });
});
