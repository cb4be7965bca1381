/** Statistics of the values of a column, readable without the column: a long series of averages needs nothing else. */
import type { ByteReader, ByteWriter } from './bytes.js';
import type { Column } from './column.js';

/** Booleans count as the numbers 1 and 0, as in series. */
export interface NumberStatistics {
  /** The count of numbers. */
  readonly n: number;
  readonly sum: number;
  readonly min: number;
  /** The time of the first least number. */
  readonly tmin: number;
  readonly max: number;
  readonly tmax: number;
  readonly first: number;
  readonly last: number;
}

export interface Statistics {
  /** The count of all values but null. */
  readonly values: number;
  /** Null without numbers. */
  readonly numbers: NumberStatistics | null;
}

/** `times` are those of all rows. */
export function toStatistics(column: Column, times: Float64Array): Statistics {
  let values = 0;
  let found: { -readonly [name in keyof NumberStatistics]: number } | null = null;
  column.forEach((row, number) => {
    values++;
    if (Number.isNaN(number)) return;
    const time = times[row] as number;
    if (found === null) {
      found = { n: 1, sum: number, min: number, tmin: time, max: number, tmax: time, first: number, last: number };
      return;
    }
    found.n++;
    found.sum += number;
    found.last = number;
    if (number < found.min) {
      found.min = number;
      found.tmin = time;
    }
    if (number > found.max) {
      found.max = number;
      found.tmax = time;
    }
  });
  return { values, numbers: found };
}

/** Times are written from `fromMs` on. */
export function writeStatistics(out: ByteWriter, { values, numbers }: Statistics, fromMs: number): void {
  out.varint(values);
  out.varint(numbers?.n ?? 0);
  if (numbers === null) return;
  const { sum, min, tmin, max, tmax, first, last } = numbers;
  for (const number of [sum, min, max, first, last]) out.double(number);
  out.varint(tmin - fromMs);
  out.varint(tmax - fromMs);
}

export function readStatistics(reader: ByteReader, fromMs: number): Statistics {
  const values = reader.varint();
  const n = reader.varint(values);
  if (n === 0) return { values, numbers: null };
  const sum = reader.double();
  const min = reader.double();
  const max = reader.double();
  const first = reader.double();
  const last = reader.double();
  const tmin = fromMs + reader.varint();
  const tmax = fromMs + reader.varint();
  return { values, numbers: { n, sum, min, tmin, max, tmax, first, last } };
}
