/** Times and durations as clients write them. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isTimeMs, parseDuration, parseTime } from '../../../src/core/time.js';

const NOON = Date.UTC(2024, 1, 29, 12, 30);

describe('a valid time', () => {
  test.each<[text: string, ms: number]>([
    ['0', 0],
    ['1709209800000', NOON],
    ['-1', -1],
    ['2024', 2_024],
    ['8640000000000000', 8.64e15],
    ['2024-02-29', Date.UTC(2024, 1, 29)],
    ['2024-02-29T12:30', NOON],
    ['2024-02-29t12:30', NOON],
    ['2024-02-29T12:30:45', NOON + 45_000],
    ['2024-02-29T12:30:45.1', NOON + 45_100],
    ['2024-02-29T12:30:45.123', NOON + 45_123],
    ['2024-02-29T12:30:45.123999', NOON + 45_123],
    ['2024-02-29T12:30Z', NOON],
    ['2024-02-29T12:30z', NOON],
    ['2024-02-29T12:30:00.000Z', NOON],
    ['2024-02-29T15:30+03:00', NOON],
    ['2024-02-29T15:30+0300', NOON],
    ['2024-02-29T15:30 03:00', NOON],
    ['2024-02-29T07:00-05:30', NOON],
    ['2024-02-29T24:00', Date.UTC(2024, 2, 1)],
    ['1970-01-01T00:00', 0],
    ['0001-01-01', Date.parse('0001-01-01')],
  ])('is parsed: %s', (text, ms) => expect(parseTime(text)).toBe(ms));

  test('includes every time that JavaScript formats, to the millisecond', () => {
    const times = fc.date({
      min: new Date('0000-01-01T00:00:00.000Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(times, (date) => {
        expect(parseTime(date.toISOString())).toBe(date.getTime());
        expect(parseTime(String(date.getTime()))).toBe(date.getTime());
      }),
    );
  });
});

describe('an invalid time', () => {
  test.each([
    '',
    ' ',
    'now',
    'null',
    'NaN',
    'Infinity',
    '1.5',
    '1e3',
    '0x10',
    '+5',
    '8640000000000001',
    '99999999999999999',
    '2024-02',
    '2024-2-9',
    '2023-02-29',
    '2024-13-01',
    '2024-00-01',
    '2024-01-00',
    '2024-04-31',
    '2024-02-29T',
    '2024-02-29T12',
    '2024-02-29T25:00',
    '2024-02-29T24:01',
    '2024-02-29T12:60',
    '2024-02-29T12:30:60',
    '2024-02-29T12:30:',
    '2024-02-29 12:30',
    '2024-02-29T12:30+24:00',
    '2024-02-29T12:30+03',
    '2024-02-29Z',
    'Thu, 29 Feb 2024 12:30:00 GMT',
    '2024-02-29T12:30\n',
  ])('is refused: %j', (text) => expect(parseTime(text)).toBeNull());
});

describe('a time in milliseconds', () => {
  test.each<[value: unknown, is: boolean]>([
    [0, true],
    [-8.64e15, true],
    [8.64e15, true],
    [8.64e15 + 2, false],
    [1.5, false],
    [Number.NaN, false],
    [Number.POSITIVE_INFINITY, false],
    ['0', false],
    [null, false],
    [true, false],
  ])('is recognized: %p, %p', (value, is) => expect(isTimeMs(value)).toBe(is));
});

describe('a duration', () => {
  test.each<[text: string | number, ms: number | null]>([
    ['90 days', 90 * 86_400_000],
    ['1 day', 86_400_000],
    ['1d', 86_400_000],
    ['12h', 43_200_000],
    ['2 hours', 7_200_000],
    ['30m', 1_800_000],
    ['30 minutes', 1_800_000],
    ['3s', 3_000],
    ['1.5 s', 1_500],
    ['250ms', 250],
    ['2w', 1_209_600_000],
    ['2 WEEKS', 1_209_600_000],
    ['60000', 60_000],
    [60_000, 60_000],
    [' 5s ', 5_000],
    ['0', 0],
    ['', null],
    ['days', null],
    ['-5s', null],
    [-5, null],
    ['5 years', null],
    ['1 day 2 hours', null],
    ['1e3', null],
    [Number.NaN, null],
    [1e300, null],
    ['999999999999999w', null],
  ])('is parsed: %p, %p', (text, ms) => expect(parseDuration(text)).toBe(ms));
});
