/** Tables as spreadsheets write them. */
import { describe, expect, test } from '@jest/globals';
import { decodeFile, parseSheet } from '../../../src/console/import/csv.js';

const bytesOf = (text: string, encoding: BufferEncoding = 'utf8'): Uint8Array => Buffer.from(text, encoding);

test.each([
  ['UTF-8', bytesOf('Größe')],
  ['UTF-8 with a byte order mark', bytesOf('\uFEFFGröße')],
  ['UTF-16 with a byte order mark', bytesOf('\uFEFFGröße', 'utf16le')],
  ['the code page of Western Europe', bytesOf('Größe', 'latin1')],
])('reads %s', (_, bytes) => {
  expect(decodeFile(bytes).replace('\uFEFF', '')).toBe('Größe');
});

describe('a table', () => {
  test.each([
    ['commas', 'id,name\na,A\nb,B\n'],
    ['semicolons, a byte order mark and CRLF', '\uFEFFid;name\r\na;A\r\nb;B\r\n'],
    ['tabs', 'id\tname\na\tA\nb\tB'],
    ['the separator that Excel says', 'sep=|\r\nid|name\r\na|A\r\nb|B\r\n'],
    ['quotes', '"id";"name"\r\n"a";"A"\r\n"b";"B"\r\n'],
    ['old line ends', 'id;name\ra;A\rb;B\r'],
  ])('is read with %s', (_, text) => {
    const { columns, rows } = parseSheet(text);
    expect(columns).toEqual(['id', 'name']);
    expect(rows.map(({ cells }) => cells)).toEqual([
      ['a', 'A'],
      ['b', 'B'],
    ]);
  });

  test('keeps separators, quotes and line breaks inside of quotes, and counts rows as a spreadsheet does', () => {
    const { rows } = parseSheet('id;"a;b"\r\n1;"x; ""y""\r\nz"\r\n\r\n2;"48,1"\r\n');
    expect(rows).toEqual([
      { row: 2, cells: ['1', 'x; "y"\r\nz'] },
      { row: 4, cells: ['2', '48,1'] },
    ]);
  });

  test('takes off what exports put before numbers and formulas', () => {
    const { rows } = parseSheet('id,name\n"=""007""",\'=1+1\n"=""12""34""", -3 \n');
    expect(rows.map(({ cells }) => cells)).toEqual([
      ['007', '=1+1'],
      ['="12"34"', '-3'],
    ]);
  });

  test('may have rows that are shorter or longer than the first one', () => {
    expect(parseSheet('id,name\na\nb,B,more\n').rows.map(({ cells }) => cells)).toEqual([['a'], ['b', 'B', 'more']]);
  });

  test('has no rows if there is nothing but names, and is refused if a quote does not close', () => {
    expect(parseSheet('')).toEqual({ columns: [], rows: [] });
    expect(parseSheet('id;name\r\n;\r\n').rows).toEqual([]);
    expect(() => parseSheet('id,name\n"a,A\n')).toThrow();
  });
});
