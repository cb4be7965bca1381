/** Times and durations as devices, databases, programs and people write them. Long because it is the table of all forms. */
import { describe, expect, test } from '@jest/globals';
import { explainSeconds, parseDuration } from '../../../src/core/duration.js';
import { explainDeviceTime, explainQueryTime, parseDeviceTime, parseQueryTime } from '../../../src/core/time.js';
import { fc } from '../../support/runs.js';

const MORNING = Date.UTC(2026, 10, 23, 10);
const DAY_MS = 86_400_000;
const ALL_TIMES = fc.date({
  min: new Date('0001-01-02T00:00:00.000Z'),
  max: new Date('9999-12-31T23:59:59.999Z'),
  noInvalidDate: true,
});
const isoOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

describe('digits that a device sends as its time', () => {
  test.each<[value: number | string, ms: number]>([
    // Seconds.
    [1_795_500_000, 1_795_500_000_000],
    ['1795500000', 1_795_500_000_000],
    [' 1795500000 ', 1_795_500_000_000],
    [1_795_500_000.123, 1_795_500_000_123],
    [1_795_500_000.9999, 1_795_500_000_999],
    ['1795500000.5', 1_795_500_000_500],
    ['1795500000.0', 1_795_500_000_000],
    ['1795500000.1239999999', 1_795_500_000_123],
    [999_999_999, 999_999_999_000],
    [100_000_000, 100_000_000_000],
    // Milliseconds.
    [1_795_500_000_123, 1_795_500_000_123],
    ['1795500000123', 1_795_500_000_123],
    [1_795_500_000_123.456, 1_795_500_000_123],
    ['1795500000123.999', 1_795_500_000_123],
    [999_999_999_999, 999_999_999_999],
    [100_000_000_000, 100_000_000_000],
    // Microseconds.
    [1_795_500_000_123_456, 1_795_500_000_123],
    ['1795500000123999', 1_795_500_000_123],
    // Nanoseconds; a double rounds them to 256.
    ['1795500000123999999', 1_795_500_000_123],
    [Number('1795500000123000000'), 1_795_500_000_123],
    [Number('1795500000123456789'), 1_795_500_000_123],
    // Of a clock that was reset.
    [0, 0],
    [1_000, 1_000],
    [12.5, 12],
    ['86400000', DAY_MS],
    [17_955_000_000, 17_955_000_000],
    ['99999999999.5', 99_999_999_999],
    [-0, 0],
    ['-0', 0],
    [-1, -1],
    [-1.5, -2],
    ['-0.25', -1],
    [-3_600, -3_600],
    [' -3600000 ', -3_600_000],
    [-20_261_123, -20_261_123],
    [-2_208_988_800, Date.UTC(1900, 0, 1)],
    ['-2208988800.0001', Date.UTC(1900, 0, 1) - 1],
    ['-2208988800.5', Date.UTC(1900, 0, 1) - 500],
    [-86_400_000_000, -1_000 * DAY_MS],
    [-1_795_500_000_000, -1_795_500_000_000],
    [-11_644_473_600_000, Date.UTC(1601, 0, 1)],
  ])('are a time: %p', (value, ms) => expect(parseDeviceTime(value)).toBe(ms));

  test.each<unknown>([
    20_261_123,
    '20261123',
    '202611231000',
    202_611_231_000,
    20_261_123_100_000,
    '20261123100000',
    179_550_000_012_345,
    '17955000001234567',
    '179550000012345678',
    '17955000001234567890',
    1e21,
    1e300,
    0.000_000_1,
    -62_135_596_800,
    '-62135596800',
    '-62135589600.5',
    -62_135_596_800_000,
    -99_999_999_999_999,
    '-62135596800000000',
    '-6795364578871345152',
    '-9223372036854775808',
    '--5',
    '- 5',
    '-007',
    -8_640_000_000_000_000,
    '+1795500000',
    '1795500000,5',
    '1,795,500,000',
    '1795500000.',
    '.5',
    '1.7955e9',
    '0x6B04A5E0',
    '007',
    '1795500000s',
    '１７９５５０００００',
    '',
    ' ',
    'now',
    'null',
    'NaN',
    'Infinity',
    Number.NaN,
    Number.POSITIVE_INFINITY,
    true,
    {},
    [1_795_500_000],
    null,
  ])('are no time: %p', (value) => expect(parseDeviceTime(value)).toBeNull());

  test('are rounded down to the millisecond, as numbers and as text alike', () => {
    const micros = fc.integer({ min: 1_000_000_000_000_000, max: 4_000_000_000_000_000 });
    fc.assert(
      fc.property(micros, (us) => {
        const ms = Math.floor(us / 1_000);
        const digits = String(us);
        const seconds = `${digits.slice(0, 10)}.${digits.slice(10)}`;
        expect(parseDeviceTime(us)).toBe(ms);
        expect(parseDeviceTime(seconds)).toBe(ms);
        expect(parseDeviceTime(Number(seconds))).toBe(ms);
        expect(parseDeviceTime(`${digits}789`)).toBe(ms);
        expect(parseDeviceTime(`${digits.slice(0, 13)}.${digits.slice(13)}`)).toBe(ms);
      }),
    );
  });

  test('are explained when they look like a date', () => {
    expect(explainDeviceTime(20_261_123)).toContain('write "2026-11-23"');
    expect(explainDeviceTime('20261123103000')).toContain('write "2026-11-23T10:30:00"');
    expect(explainDeviceTime('yesterday')).toContain('expected a time');
  });

  test.each<unknown>([{ toString: 1 }, { valueOf: 1, toString: {} }, [{ toString: null }], Object.create(null)])(
    'are explained for values that have no text: %j',
    (value) => {
      expect(parseDeviceTime(value)).toBeNull();
      expect(explainDeviceTime(value)).toContain('expected a time');
    },
  );
});

describe('digits as the bound of an interval', () => {
  test.each<[text: string, ms: number]>([
    ['0', 0],
    ['1', 1],
    ['999', 999],
    ['100000000000', 100_000_000_000],
    ['1795500000000', 1_795_500_000_000],
    ['1795500000000.999', 1_795_500_000_000],
    [' 1795500000000 ', 1_795_500_000_000],
    ['99999999999999', 99_999_999_999_999],
    ['946684800000', 946_684_800_000],
    ['631152000000', 631_152_000_000],
    ['204999999999', 204_999_999_999],
    ['20999999999999', 20_999_999_999_999],
  ])('are milliseconds: %s', (text, ms) => {
    expect(parseQueryTime(text, 'first')).toBe(ms);
    expect(parseQueryTime(text, 'last')).toBe(ms);
  });

  test.each<[text: string, why: string]>([
    ['20261123', 'these digits look like a date: write 2026-11-23'],
    ['202611231030', 'these digits look like a date: write 2026-11-23T10:30'],
    ['20261123103000', 'these digits look like a date: write 2026-11-23T10:30:00'],
    ['2026', 'these digits look like a date: write 2026-01-01'],
    ['202611', 'these digits look like a date: write 2026-11-01'],
    // Years of two digits, and dates that do not exist: as milliseconds, these are of 1976 or centuries ahead.
    ['261123103000', 'these digits look like a date: write 2026-11-23T10:30:00'],
    ['991231235959', 'these digits look like a date'],
    ['202611310000', 'expected ms since the epoch'],
    ['202602290000', 'expected ms since the epoch'],
    ['202600000000', 'expected ms since the epoch'],
    ['20261131000000', 'expected ms since the epoch'],
    ['20261131235960', 'expected ms since the epoch'],
    ['20260230120000.5', 'expected ms since the epoch'],
    ['202623111000', 'expected ms since the epoch'],
    ['19991301000000', 'expected ms since the epoch'],
    ['1795500000', 'these look like seconds: write milliseconds, 1795500000000, or 2026-11-24T06:00:00.000Z'],
    ['1795500000.25', 'these look like seconds: write milliseconds, 1795500000250'],
    ['999999999', 'these look like seconds'],
    ['1795500000123456', 'these look like microseconds: write milliseconds, 1795500000123'],
    ['1795500000123456789', 'these look like nanoseconds: write milliseconds, 1795500000123'],
    ['1000', 'expected ms since the epoch'],
    ['17955000', 'expected ms since the epoch'],
    ['17955000000', 'expected ms since the epoch'],
    ['179550000000000', 'expected ms since the epoch'],
    ['8640000000000000', 'these look like microseconds'],
    ['-1', 'expected ms since the epoch'],
    ['-1795500000000', 'expected ms since the epoch'],
    ['+5', 'expected ms since the epoch'],
    ['007', 'expected ms since the epoch'],
    ['1.7e12', 'expected ms since the epoch'],
    ['0x10', 'expected ms since the epoch'],
    ['7d', 'expected ms since the epoch'],
    ['now', 'expected ms since the epoch'],
    [' ', 'expected ms since the epoch'],
  ])('are no time: %s', (text, why) => {
    expect(parseQueryTime(text, 'first')).toBeNull();
    expect(parseQueryTime(text, 'last')).toBeNull();
    expect(explainQueryTime(text)).toContain(why);
  });
});

describe('a day as the bound of an interval', () => {
  test.each<[text: string]>([
    ['2026-11-23'],
    ['2026/11/23'],
    ['2026.11.23'],
    ['2026-327'],
    ['2026-W48-1'],
    ['2026W481'],
    [' 2026-11-23 '],
  ])('begins and ends with the day: %s', (text) => {
    expect(isoOf(parseQueryTime(text, 'first'))).toBe('2026-11-23T00:00:00.000Z');
    expect(isoOf(parseQueryTime(text, 'last'))).toBe('2026-11-23T23:59:59.999Z');
  });

  test.each([['2026-11-23T00:00'], ['2026-11-23 00:00:00'], ['20261123T00Z'], ['Mon, 23 Nov 2026 00:00:00 GMT']])(
    'is one moment with a clock time: %s',
    (text) => {
      expect(isoOf(parseQueryTime(text, 'last'))).toBe('2026-11-23T00:00:00.000Z');
    },
  );
});

describe('a time that a program, a database or a person writes', () => {
  const parseBoth = (text: string) => [parseDeviceTime(text), parseQueryTime(text, 'first')];

  test.each<[text: string, ms: number]>([
    ['2026-11-23 10:00:00.25 +0000 UTC m=+0.000012', MORNING + 250],
    ['2026-11-23 12:00:00.25 +0200 CEST m=-3.5', MORNING + 250],
    // RFC 3339, and ISO 8601 in its extended format.
    ['2026-11-23T10:00:00Z', MORNING],
    ['2026-11-23t10:00:00z', MORNING],
    ['2026/11/23 10:00:00', MORNING],
    ['2026/11/23T10:00:00.5+00:00', MORNING + 500],
    ['2026.11.23 10:00', MORNING],
    ['2026:11:23 10:00:00', MORNING],
    ['2026-11-23T10:00:00Z[Europe/Berlin]', MORNING],
    ['2026-11-23T11:00:00+01:00[Europe/Berlin]', MORNING],
    ['2026-11-23T11:00+01:00[Europe/Berlin][u-ca=iso8601]', MORNING],
    ['2026-11-23T10:00:00Z[Etc/GMT+1]', MORNING],
    ['2026-11-23T10:00:00Z[!UTC]', MORNING],
    ['2026-11-23T08:00:00\u221202:00', MORNING],
    ['2026-11-23 10:00:00Z', MORNING],
    ['2026-11-23T10:00:00.000Z', MORNING],
    ['2026-11-23T10:00:00.1Z', MORNING + 100],
    ['2026-11-23T10:00:00,5Z', MORNING + 500],
    ['2026-11-23T10:00:00.0009Z', MORNING],
    ['2026-11-23T10:00:00.1239999999999999999Z', MORNING + 123],
    ['2026-11-23T10:00:00+00:00', MORNING],
    ['2026-11-23T10:00:00-00:00', MORNING],
    ['2026-11-23T12:00:00+02:00', MORNING],
    ['2026-11-23T12:00:00+0200', MORNING],
    ['2026-11-23T12:00:00+02', MORNING],
    ['2026-11-23T04:30:00-05:30', MORNING],
    ['2026-11-23T12:00:00 02:00', MORNING],
    ['2026-11-23T12:00:00 02', MORNING],
    ['2026-11-23', MORNING - 10 * 3_600_000],
    ['2026-11-23T10:00', MORNING],
    ['2026-11-23T10', MORNING],
    ['2026-11-23T10Z', MORNING],
    ['2026-11-23T10:00Z', MORNING],
    ['2026-11-23T12:00+02', MORNING],
    ['2026-11-23T24:00', MORNING + 14 * 3_600_000],
    ['2016-12-31T23:59:60Z', 1_483_228_800_000],
    ['2016-12-31T23:59:60.5Z', 1_483_228_800_000],
    ['2017-01-01T05:29:60+05:30', 1_483_228_800_000],
    ['2026-11-23T10:00:00Z ', MORNING],
    ['\t2026-11-23T10:00:00Z\r\n', MORNING],
    // ISO 8601 in its basic format, with weeks, and with days of the year.
    ['20261123T100000Z', MORNING],
    ['20261123T100000', MORNING],
    ['20261123T1000', MORNING],
    ['20261123T10Z', MORNING],
    ['20261123T120000.25+0200', MORNING + 250],
    ['20261123T10:00:00Z', MORNING],
    ['2026-W48-1T10:00:00Z', MORNING],
    ['2026W481T100000Z', MORNING],
    ['2026-w48-1 10:00', MORNING],
    ['2020-W53-5T10:00Z', Date.UTC(2021, 0, 1, 10)],
    ['2026-327T10:00:00Z', MORNING],
    ['2026327T100000Z', MORNING],
    ['2024-366', Date.UTC(2024, 11, 31)],
    // str(datetime) of Python, PostgreSQL, MySQL, SQLite, InfluxDB, Ruby and Go.
    ['2026-11-23 10:00:00', MORNING],
    ['2026-11-23 10:00', MORNING],
    ['2026-11-23 10:00:00.123456', MORNING + 123],
    ['2026-11-23 10:00:00.123456+00:00', MORNING + 123],
    ['2026-11-23 12:00:00+02', MORNING],
    ['2026-11-23 12:00:00.5+02', MORNING + 500],
    ['2026-11-23 10:00:00 UTC', MORNING],
    ['2026-11-23 10:00:00.123 utc', MORNING + 123],
    ['2026-11-23 10:00:00 GMT', MORNING],
    ['2026-11-23 12:00:00 +0200', MORNING],
    ['2026-11-23 10:00:00.123456789 +0000 UTC', MORNING + 123],
    ['2026-11-23 11:00:00 +0100 CET', MORNING],
    // RFC 1123 and 5322, C's asctime, date, and JavaScript's String(date).
    ['Mon, 23 Nov 2026 10:00:00 GMT', MORNING],
    ['mon, 23 nov 2026 10:00:00 gmt', MORNING],
    ['Mon, 23 Nov 2026 12:00:00 +0200', MORNING],
    ['Mon, 23 Nov 2026 10:00:00 -0000', MORNING],
    ['Mon, 23 Nov 2026 10:00:00 +0000 (UTC)', MORNING],
    ['Tue, 1 Dec 2026 10:00 UT', Date.UTC(2026, 11, 1, 10)],
    ['23 Nov 2026 10:00:00', MORNING],
    ['Monday, 23-Nov-2026 10:00:00 GMT', MORNING],
    ['Mon Nov 23 10:00:00 2026', MORNING],
    ['Tue Dec  1 10:00:00 2026', Date.UTC(2026, 11, 1, 10)],
    ['Mon Nov 23 10:00:00 UTC 2026', MORNING],
    ['Mon Nov 23 2026 11:00:00 GMT+0100 (Central European Standard Time)', MORNING],
    // Extremes.
    ['1970-01-01T00:00:00Z', 0],
    ['1601-01-01T00:00:00Z', Date.UTC(1601, 0, 1)],
    ['0099-03-01', Date.parse('0099-03-01')],
    ['9999-12-31T23:59:59.9999999Z', Date.UTC(9999, 11, 31, 23, 59, 59, 999)],
    ['2024-02-29', Date.UTC(2024, 1, 29)],
  ])('is parsed: %j', (text, ms) => expect(parseBoth(text)).toEqual([ms, ms]));

  test('includes every time that JavaScript formats, to the millisecond', () => {
    fc.assert(
      fc.property(ALL_TIMES, (date) => {
        expect(parseBoth(date.toISOString())).toEqual([date.getTime(), date.getTime()]);
        const second = Math.floor(date.getTime() / 1_000) * 1_000;
        expect(parseDeviceTime(date.toUTCString())).toBe(second);
      }),
    );
  });

  test.each([
    '2026-02-29',
    '2026-13-01',
    '2026-00-01',
    '2026-01-00',
    '2026-04-31',
    '2026-11',
    '2026-1-9',
    '2026-1123',
    '202611-23',
    '26-11-23',
    '2026-W48',
    '2026-W54-1',
    '2021-W53-1',
    '2026-W00-1',
    '2026-W48-0',
    '2026-W48-8',
    '2026-W481',
    '2026-366',
    '2026-000',
    '2026-11-23T',
    '2026-11-23 10',
    '2026-11-23T1',
    '2026-11-23T25:00',
    '2026-11-23T24:01',
    '2026-11-23T24:00:60',
    '2026-11-23T10:60',
    '2026-11-23T10:00:61',
    '2026-11-23T10:00:',
    '2026-11-23T10:00:00.',
    '2026-11-23T10:00.5',
    '2026-11-23T10:00:00+24:00',
    '2026-11-23T10:00:00+2',
    '2026-11-23T10:00:00+02:60',
    '2026-11-23T10:00:00 CET',
    '2026-11-23T10:00:00ZZ',
    '2026-11-23Z',
    '2026-11-23 10:00 PM',
    '23.11.2026',
    '11/23/2026',
    '11/23/2026, 10:00:00 AM',
    '23/11/2026',
    '2026/11-23',
    '2026/1123',
    '2026/13/01 10:00:00',
    '2026/02/29',
    '2026:11:23:10:00:00',
    '2026-11-23T10:00:00[Europe/Berlin]',
    '2026-11-23T10:00:00Z[',
    '2026-11-23T10:00:00Z[]',
    '2026-11-23[UTC]',
    '2026\u221211-23',
    '10:00:00',
    'Tue, 23 Nov 2026 10:00:00 GMT',
    'Mon, 31 Nov 2026 10:00:00 GMT',
    'Mon, 23 Nxv 2026 10:00:00 GMT',
    'Mon, 23 Nov 26 10:00:00 GMT',
    'Mon, 23 Nov 2026',
    'Mon Nov 23 10:00:00 CET 2026',
    '0000-00-00 00:00:00',
    '0000-01-01',
    '-0001-01-01',
    '0001-01-01',
    '0001-01-01T00:00:00',
    '0001-01-01T00:00:00Z',
    '0001-01-01 00:00:00+14:00',
    '0001-01-01T00:00:00-12:00',
    '+010000-01-01T00:00:00Z',
    `2026-11-23T10:00:00.${'1'.repeat(200)}Z`,
  ])('is refused when it has not one meaning: %j', (text) => expect(parseBoth(text)).toEqual([null, null]));
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
    ['20261123', null],
    [202_611_231_000, null],
    ['315360000000', 315_360_000_000],
    ['1795500000000', null],
    [1_795_500_000_000, null],
    ['17955 d', 1_551_312_000_000],
  ])('is parsed: %p, %p', (text, ms) => expect(parseDuration(text)).toBe(ms));

  test.each<[value: unknown, why: string]>([
    [86_400, '86400 looks like seconds: write "1 d", or 86400000 for milliseconds'],
    ['86400', '86400 looks like seconds: write "1 d"'],
    [' 3600 ', '3600 looks like seconds: write "1 h", or 3600000'],
    [1_800, 'write "30 min", or 1800000'],
    [5_400, 'write "90 min"'],
    [7_200, 'write "2 h"'],
    [604_800, 'write "7 d"'],
    [2_592_000, 'write "30 d"'],
    [7_776_000, 'write "90 d"'],
    [31_536_000, 'write "365 d"'],
  ])('looks like seconds: %p', (value, why) => expect(explainSeconds(value)).toContain(why));

  test.each<unknown>(
    [0, 60, 250, 900, 1_000, 1_500, 2_000, 3_000, 5_000, 9_000, 10_000, 60_000, 90_000, 900_000].concat([
      3_600_000, 86_400_000, 432_000_000, 604_800_000, 2_592_000_000, 7_776_000_000, 31_536_000_000,
    ]),
  )('does not look like seconds: %p', (value) => expect(explainSeconds(value)).toBeNull());

  test.each<unknown>(['86400 s', '86400ms', '1 d', '3600.0', null, undefined, {}, [3_600], true, ''])(
    'does not look like seconds: %p',
    (value) => expect(explainSeconds(Array.isArray(value) ? String(value[0] * 1_000) : value)).toBeNull(),
  );
});
