/** A table as CSV for spreadsheets. */
import { expect, test } from '@jest/globals';
import { toCsv } from '../../../src/console/home/table-csv.js';

const lineOf = (cell: unknown): string =>
  toCsv([[cell]])
    .replace('\uFEFF', '')
    .replace(/\r\n$/, '');

test.each([
  [null, ''],
  [undefined, ''],
  [1.5, '1.5'],
  [-3, '-3'],
  [true, 'true'],
  ['plain', 'plain'],
  ['a,b', '"a,b"'],
  ['say "x"', '"say ""x"""'],
  ['two\nlines', '"two\nlines"'],
])('writes %j as %s', (cell, line) => {
  expect(lineOf(cell)).toBe(line);
});

test.each(['=1+1', '+1', '-1', '@SUM(A1)', '\tx'])(
  'escapes %j, which a spreadsheet would take for a formula',
  (text) => {
    expect(lineOf(text)).toBe(`'${text}`);
  },
);

test.each(['0012', '1234567890123456'])('keeps the digits of %s', (text) => {
  expect(lineOf(text)).toBe(`"=""${text}"""`);
});
