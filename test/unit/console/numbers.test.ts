/** The forms of numbers: what a device measures is never shown as 0 unless it is, and never in hundreds of digits. */
import { expect, test } from '@jest/globals';
import { formOnAxis } from '../../../src/console/text/axis-numbers.js';
import { formOf } from '../../../src/console/text/numbers.js';

const write = (value: number, form: Intl.NumberFormatOptions) => new Intl.NumberFormat('en', form).format(value);

test.each([
  [0, '0'],
  [21.456, '21.46'],
  [-273.15, '-273.15'],
  [0.12345, '0.1235'],
  [0.0000123, '0.0000123'],
  [-0.00456789, '-0.004568'],
  [1.5e-9, '1.5E-9'],
  [1_700_000_000_000, '1,700,000,000,000'],
  [1.2e300, '1.2E300'],
  [-1.2e300, '-1.2E300'],
])('writes %p as %s', (value, text) => {
  expect(write(value, formOf(value))).toBe(text);
});

test.each([
  [
    [0, 2.5, 5],
    ['0', '2.5', '5'],
  ],
  [
    [0, 20, 40],
    ['0', '20', '40'],
  ],
  [
    [0.00002, 0.00003],
    ['0.00002', '0.00003'],
  ],
  [
    [12_345_678, 12_345_678.5],
    ['12,345,678', '12,345,678.5'],
  ],
  [
    [0, 2e-12, 4e-12],
    ['0E0', '2E-12', '4E-12'],
  ],
  [
    [1.21e300, 1.22e300],
    ['1.21E300', '1.22E300'],
  ],
  [[7], ['7']],
  [[], []],
])('writes the marks %p of an axis as %p', (marks, texts) => {
  const form = formOnAxis(marks);
  expect(marks.map((mark) => write(mark, form))).toEqual(texts);
});
