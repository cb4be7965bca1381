/** Digits are never changed by being read as a number. */
import { describe, expect, test } from '@jest/globals';
import { isExactNumber, parseExactJson, parseTypedValue } from '../../../src/core/exact-json.js';
import { declarationsOf } from '../../../src/core/model.js';
import { parseBatch } from '../../../src/packets/packet.js';
import { jsonText } from '../../support/any-json.js';
import { fc } from '../../support/runs.js';

const MAX = Number.MAX_SAFE_INTEGER;

describe('an integer in JSON that a double cannot hold', () => {
  test.each<[text: string, value: unknown]>([
    ['8944110068765432109', '8944110068765432109'],
    ['8949000000000000000', '8949000000000000000'],
    ['-8944110068765432109', '-8944110068765432109'],
    ['9007199254740991', MAX],
    ['-9007199254740991', -MAX],
    ['9007199254740992', '9007199254740992'],
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['18446744073709551615', '18446744073709551615'],
    ['100000000000000000000', '100000000000000000000'],
    ['{"iccid":8944110068765432109}', { iccid: '8944110068765432109' }],
    ['{ "iccid" : 8944110068765432109 , "n":1}', { iccid: '8944110068765432109', n: 1 }],
    ['[8944110068765432109,\n8944110068765432110\n]', ['8944110068765432109', '8944110068765432110']],
    ['{"a":[{"b":-8944110068765432109}]}', { a: [{ b: '-8944110068765432109' }] }],
    ['{"a":"8944110068765432109"}', { a: '8944110068765432109' }],
    ['{"8944110068765432109":1}', { '8944110068765432109': 1 }],
    ['{"a":"\\"8944110068765432109","b":8944110068765432109}', { a: '"8944110068765432109', b: '8944110068765432109' }],
    ['{"a":"x\\\\","b":8944110068765432109}', { a: 'x\\', b: '8944110068765432109' }],
    ['{"a":"\\\\\\"","b":8944110068765432109}', { a: '\\"', b: '8944110068765432109' }],
    ['[0.30000000000000004,1.1234567890123456789]', [0.1 + 0.2, 1.123_456_789_012_345_7]],
    ['[1e-1234567890123456,1234567890123456.5]', [0, 1_234_567_890_123_456.5]],
    ['12345678901234567e3', 12_345_678_901_234_567e3],
    ['8944110068765432109.0', '8944110068765432109.0'],
    ['[9007199254740993.000 ,1]', ['9007199254740993.000', 1]],
    ['{"a":12345678901234567890e0}', { a: '12345678901234567890e0' }],
    ['{"a":-9007199254740993E+00}', { a: '-9007199254740993E+00' }],
    ['[9007199254740991.0,1234567890123456.50]', [MAX, 1_234_567_890_123_456.5]],
    ['[123456789012345.25]', [123_456_789_012_345.25]],
  ])('is text: %s', (text, value) => expect(parseExactJson(text)).toEqual(value));

  test.each([
    '08944110068765432109',
    '{8944110068765432109:1}',
    '{8944110068765432109 :1}',
    '{"a" 8944110068765432109}',
    '{"a":1 8944110068765432109}',
    '[8944110068765432109',
    '8944110068765432109 1',
    '--8944110068765432109',
    '+8944110068765432109',
    'a8944110068765432109',
    '8944110068765432109n',
    '"8944110068765432109',
    '{"a":8944110068765432109,}',
    '8944110068765432109.',
  ])('stays invalid where JSON is: %s', (text) => expect(() => parseExactJson(text)).toThrow(SyntaxError));

  test('changes nothing of any other JSON', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        fc.pre(!/\d{16}/.test(text));
        expect(parseExactJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test('is read back digit by digit, wherever it stands', () => {
    const integer = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n });
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), integer)), (pairs) => {
        const text = `[${pairs.map(([name, number]) => `{${JSON.stringify(name)}:${number}}`).join(',')}]`;
        const parsed = parseExactJson(text) as Record<string, unknown>[];
        expect(parsed.map((one) => String(Object.values(one)[0]))).toEqual(pairs.map(([, number]) => String(number)));
      }),
    );
  });
});

describe('a value that is typed', () => {
  test.each<[text: string, value: unknown]>([
    ['21.5', 21.5],
    ['-21.5', -21.5],
    ['+21.5', 21.5],
    ['+3', 3],
    ['0', 0],
    ['1e-7', 1e-7],
    ['21.5\n', 21.5],
    ['9007199254740991', MAX],
    ['12E45678', '12E45678'],
    ['12e45', '12e45'],
    ['1e3', '1e3'],
    ['0012', '0012'],
    ['1.10', '1.10'],
    ['-0', '-0'],
    ['0x1F', '0x1F'],
    ['1_000', '1_000'],
    ['8944110068765432109', '8944110068765432109'],
    ['-8944110068765432109', '-8944110068765432109'],
    ['+8944110068765432109', '+8944110068765432109'],
    ['+4915112345678', '+4915112345678'],
    ['0.1000000000000000055', '0.1000000000000000055'],
    ['Infinity', 'Infinity'],
    ['true', true],
    ['null', null],
    ['"0012"', '0012'],
    ['"12"', '12'],
    ['[1,8944110068765432109]', [1, '8944110068765432109']],
    ['{"code":12}', { code: 12 }],
    ['', ''],
    ['eco', 'eco'],
  ])('is a number only if it prints back the same: %j', (text, value) => expect(parseTypedValue(text)).toEqual(value));

  test('prints back as it was typed, if it is a number', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[+-]?\d{1,25}(\.\d{1,20})?([eE][+-]?\d{1,3})?$/), (text) => {
        expect(String(parseTypedValue(text))).toBe(
          typeof parseTypedValue(text) === 'number' ? text.replace(/^\+/, '') : text,
        );
      }),
    );
  });
});

test.each<[source: string, isExact: boolean]>([
  ['48.100', true],
  ['48.0', true],
  ['48.', true],
  ['100', true],
  ['+5', true],
  ['-0.50', true],
  ['0012', false],
  ['12E45678', false],
  ['12e4', false],
  ['8944110068765432109', false],
  ['8949000000000000000', false],
  ['+4915112345678', false],
  ['0x1F', false],
])('knows whether a number says what its source says: %s', (source, isExact) => {
  expect(isExactNumber(Number(source), source)).toBe(isExact);
});

describe('a declared number', () => {
  const declared = declarationsOf({ children: [{ type: 'argument', id: 'n', dataType: 'number' }] });
  const parse = (n: unknown) => parseBatch({ n }, declared, 0).messages[0]?.parameters;

  test.each<[given: unknown, n: number]>([
    ['9007199254740991', MAX],
    ['0012', 12],
    ['21.50', 21.5],
    ['1e3', 1_000],
  ])('accepts %j', (given, n) => expect(parse(given)).toEqual({ n }));

  test.each(['8944110068765432109', ' 9007199254740993 ', '-9007199254740993'])('refuses to round %j', (given) => {
    expect(() => parse(given)).toThrow(
      `n: expected a number of at most 15 digits; declare it as string to keep ${given.trim()}`,
    );
  });
});
