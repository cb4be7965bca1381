/** The buckets of compared series: statistics, what comes live, lines and what holds at a point. */
import { describe, expect, test } from '@jest/globals';
import {
  addNumber,
  type Columns,
  statisticsOf,
  toBuckets,
  toLine,
  valueAt,
} from '../../../src/console/compare/buckets.js';

const MINUTE_MS = 60_000;

/** Buckets of a minute from these values of each. */
function bucketsOf(values: readonly (readonly number[])[]) {
  const by = (result: (of: readonly number[]) => number): (number | null)[] =>
    values.map((of) => (of.length === 0 ? null : result(of)));
  const sumOf = (of: readonly number[]): number => of.reduce((sum, value) => sum + value, 0);
  const columns: Columns = {
    last: by((of) => of.at(-1) as number),
    min: by((of) => Math.min(...of)),
    max: by((of) => Math.max(...of)),
    sum: by(sumOf),
    avg: by((of) => sumOf(of) / of.length),
    count: values.map((of) => of.length),
  };
  return toBuckets(
    values.map((_, nth) => nth * MINUTE_MS),
    columns,
  );
}

const endMs = (count: number): number => count * MINUTE_MS;

test('computes the statistics of all numbers, not of buckets', () => {
  const values = [[1, 2, 3], [], [0, 0, 0, 0], [-5]];
  const all = values.flat();
  expect(statisticsOf(bucketsOf(values))).toEqual({
    min: -5,
    max: 3,
    last: -5,
    avg: all.reduce((sum, value) => sum + value, 0) / all.length,
  });
  expect(statisticsOf(bucketsOf([[], []]))).toBeNull();
});

test('does not count texts, of which there is neither a sum nor an average', () => {
  const buckets = toBuckets([0], { last: [4], min: [2], max: [4], sum: [6], avg: [3], count: [7] });
  expect(statisticsOf(buckets)?.avg).toBe(3);
});

describe('A number that comes live', () => {
  test('makes the buckets what the service would make of it', () => {
    const buckets = bucketsOf([[1], [5, 6], []]);
    for (const [timeMs, value] of [
      [2 * MINUTE_MS + 1, 9],
      [2 * MINUTE_MS + 2, 7],
      [MINUTE_MS + 1, 4],
    ] as const)
      expect(addNumber(buckets, endMs(3), { timeMs, value })).toBe(true);
    const { newestMs: _, ...live } = buckets;
    const { newestMs: __, ...read } = bucketsOf([[1], [5, 4, 6], [9, 7]]);
    expect(live).toEqual(read);
  });

  test.each([-1, endMs(2) + 1])('is not taken at %d, outside of the interval', (timeMs) => {
    const buckets = bucketsOf([[1], [2]]);
    expect(addNumber(buckets, endMs(2), { timeMs, value: 9 })).toBe(false);
    expect(statisticsOf(buckets)?.max).toBe(2);
  });

  test('is in the last bucket at the end of the interval', () => {
    const buckets = bucketsOf([[1], [2]]);
    expect(addNumber(buckets, endMs(2), { timeMs: endMs(2), value: 9 })).toBe(true);
    expect(buckets.last).toEqual([1, 9]);
  });
});

describe('The line', () => {
  const at = (places: readonly number[], length: number) =>
    bucketsOf(Array.from({ length }, (_, nth) => (places.includes(nth) ? [nth] : [])));

  test('joins neighbours of a device that sends seldom', () => {
    const { values, singles } = toLine(at([0, 10, 20], 21));
    expect(values.filter((value) => value === null)).toEqual([]);
    expect(singles).toEqual([]);
  });

  test('breaks where a device was silent for longer than it usually is, and shows what stands alone', () => {
    const line = toLine(at([0, 1, 2, 100, 200, 201], 202));
    expect(line.singles).toEqual([100]);
    expect(line.values.flatMap((value, index) => (value === null ? [index] : []))).toEqual([18, 116]);
    expect([0, 2, 10, 17, 18, 99, 100, 110, 150, 201].map((point) => valueAt(line, point))).toEqual([
      0,
      2,
      2,
      2,
      null,
      null,
      100,
      100,
      null,
      201,
    ]);
  });

  test('has a range only where numbers of a bucket differ', () => {
    expect(toLine(at([0, 1], 3)).isRange).toBe(false);
    expect(toLine(bucketsOf([[1, 2], [3]]))).toMatchObject({ isRange: true, low: [1, 3], high: [2, 3] });
  });

  test('says nothing before the first number', () => {
    expect(valueAt(toLine(at([3], 5)), 2)).toBeNull();
  });
});
