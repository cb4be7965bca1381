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
  ['-1', '-1'],
  ['-12.5', '-12.5'],
  ['+21.5', '+21.5'],
  ['-12,5', '"-12,5"'],
  ['-7;-8', '"-7;-8"'],
  ['-7;=1+1', `"-7;'=1+1"`],
])('writes %j as %s', (cell, line) => {
  expect(lineOf(cell)).toBe(line);
});

test.each(['=1+1', '+49 170 1', '-1 or more', '--1', '-0x10', '-2+3+cmd|x', '-', '@SUM(A1)', '\tx'])(
  'escapes %j, which a spreadsheet would take for a formula',
  (text) => {
    expect(lineOf(text)).toBe(`'${text}`);
  },
);

test.each([
  ['x;=1+1', `"x;'=1+1"`],
  [';;@SUM(A1)', `";;'@SUM(A1)"`],
  ['x;"=1+1', `"x;""'=1+1"`],
  ['x\n-A1', `"x\n'-A1"`],
  ['x\t+A1', `x\t'+A1`],
  ['\t=1+1', `'\t'=1+1`],
  ['＝1+1', `'＝1+1`],
  ['a;b', '"a;b"'],
])('escapes the cells that a spreadsheet with other separators finds in %j', (text, cell) => {
  expect(lineOf(text)).toBe(cell);
});

test.each(['0012', '-0012', '123456789012345', '1234567890123456', '12E45678', '+491701234567'])(
  'keeps the digits of %s',
  (text) => {
    expect(lineOf(text)).toBe(`"=""${text}"""`);
  },
);
