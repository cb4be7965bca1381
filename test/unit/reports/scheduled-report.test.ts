/** When a report is due, and of which interval it is: over the days on which clocks are changed. */
import { describe, expect, test } from '@jest/globals';
import {
  dueAfter,
  intervalAt,
  latestDue,
  nextDue,
  parseScheduledReport,
  turnOf,
} from '../../../src/core/scheduled-report.js';

const TO = { users: ['65a00000000000000000000b'] };
const BERLIN = 'Europe/Berlin';
const parse = (fields: object) =>
  parseScheduledReport({ name: 'x', report: 'mileage', interval: 'yesterday', cron: '0 6 * * *', to: TO, ...fields });
const ms = (text: string): number => Date.parse(text);
const text = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString().slice(0, 16));

describe('nextDue', () => {
  test.each([
    ['0 6 * * mon', 'UTC', '2026-11-29T12:00Z', '2026-11-30T06:00'],
    ['0 6 * * mon', 'UTC', '2026-11-30T06:00Z', '2026-12-07T06:00'],
    ['0 6 * * mon', 'UTC', '2026-11-30T05:59:59.999Z', '2026-11-30T06:00'],
    ['0 6 1 * *', BERLIN, '2026-11-29T12:00Z', '2026-12-01T05:00'],
    ['0 6 L * *', BERLIN, '2026-02-01T12:00Z', '2026-02-28T05:00'],
    ['0 6 29 2 *', 'UTC', '2026-11-29T12:00Z', '2028-02-29T06:00'],
    // The clocks of Berlin skip the time from two to three.
    ['30 2 * * *', BERLIN, '2026-03-28T12:00Z', '2026-03-29T01:00'],
    ['30 2 * * *', BERLIN, '2026-03-29T01:00Z', '2026-03-30T00:30'],
    // And show it twice.
    ['30 2 * * *', BERLIN, '2026-10-24T12:00Z', '2026-10-25T00:30'],
    ['30 2 * * *', BERLIN, '2026-10-25T00:30Z', '2026-10-26T01:30'],
    ['30 2 * * *', BERLIN, '2026-10-25T01:30Z', '2026-10-26T01:30'],
    ['15 * * * *', BERLIN, '2026-10-25T00:15Z', '2026-10-25T01:15'],
  ])('finds for %s in %s after %s %s', (cron, tz, after, expected) => {
    expect(text(nextDue({ cron, tz }, ms(after)))).toBe(expected);
  });
});

describe('latestDue', () => {
  test.each([
    ['on time', '2026-11-29T06:00Z', '2026-11-29T06:00:02Z', '2026-11-29T06:00'],
    ['in the very moment', '2026-11-29T06:00Z', '2026-11-29T06:00Z', '2026-11-29T06:00'],
    ['after some days', '2026-11-25T06:00Z', '2026-11-29T05:59:59Z', '2026-11-28T06:00'],
    ['on request', '2026-11-29T08:20Z', '2026-11-29T08:21Z', '2026-11-29T08:20'],
  ])('finds the latest that was missed: %s', (_, due, now, expected) => {
    expect(text(latestDue({ cron: '0 6 * * *', tz: 'UTC' }, ms(due), ms(now)))).toBe(expected);
  });

  test('needs no longer after years', () => {
    const times = { cron: '0 * * * *', tz: BERLIN };
    expect(text(latestDue(times, ms('2016-01-01T00:00Z'), ms('2026-10-25T01:10Z')))).toBe('2026-10-25T01:00');
  });
});

describe('dueAfter', () => {
  test.each([
    ['0 7 * * *', '2026-11-29T06:00Z', null, '2026-11-30T06:00'],
    ['0 8 * * *', '2026-11-29T06:01Z', '2026-11-29T06:00Z', '2026-11-29T07:00'],
    ['2 * * * *', '2026-11-29T06:01Z', '2026-11-29T06:00Z', '2026-11-29T07:02'],
    ['59 * * * *', '2026-11-29T06:01Z', '2026-11-29T06:00Z', '2026-11-29T07:59'],
    // The clocks skip the time from two to three: 2:30 is 3:00.
    ['30 * * * *', '2026-03-29T00:31Z', '2026-03-29T00:30Z', '2026-03-29T01:30'],
  ])('finds for %s at %s, due last at %s, %s', (cron, now, last, expected) => {
    expect(text(dueAfter({ cron, tz: BERLIN }, ms(now), last === null ? null : ms(last)))).toBe(expected);
  });
});

describe('turnOf', () => {
  const NOW = '2026-11-29T07:10Z';
  const turn = (asked: string | null, due: string | null, last: string | null) => {
    const [askedMs = null, dueMs = null, lastDueMs = null] = [asked, due, last].map((at) =>
      at === null ? null : ms(at),
    );
    const found = turnOf(parse({ cron: '5 * * * *' }), { askedMs, dueMs, lastDueMs }, ms(NOW));
    return [found.atMs, found.sinceMs, found.lastDueMs, found.nextMs].map(text);
  };

  test('sends for the latest time that was missed', () => {
    expect(turn(null, '2026-11-29T04:05Z', '2026-11-29T03:05Z')).toEqual([
      '2026-11-29T07:05',
      '2026-11-29T04:05',
      '2026-11-29T07:05',
      '2026-11-29T08:05',
    ]);
  });

  test('sends what was asked for, which is no time of its own', () => {
    expect(turn('2026-11-29T07:09Z', null, '2026-11-29T07:05Z')).toEqual([
      '2026-11-29T07:09',
      '2026-11-29T07:09',
      '2026-11-29T07:05',
      '2026-11-29T08:05',
    ]);
  });

  test('sends one report for a time and for what was asked for', () => {
    expect(turn('2026-11-29T07:04Z', '2026-11-29T07:05Z', null)).toEqual([
      '2026-11-29T07:05',
      '2026-11-29T07:04',
      '2026-11-29T07:05',
      '2026-11-29T08:05',
    ]);
  });

  test('sends nothing within an hour, and waits for the next time after it', () => {
    expect(turn(null, '2026-11-29T07:05Z', '2026-11-29T06:20Z')).toEqual([
      null,
      '2026-11-29T07:10',
      '2026-11-29T06:20',
      '2026-11-29T08:05',
    ]);
    expect(turn('2026-11-29T07:09Z', '2026-11-29T07:05Z', '2026-11-29T06:20Z')[0]).toBe('2026-11-29T07:09');
  });
});

describe('intervalAt', () => {
  const SHIFT = { interval: 'last shift', hours: { from: '06:00', to: '14:00' }, report: 'shift' };
  const NIGHT = { interval: 'last shift', hours: { from: '22:00', to: '06:00' }, report: 'shift' };
  test.each([
    [{ interval: 'today' }, '2026-11-29T18:00Z', '2026-11-28T23:00', '2026-11-29T18:00'],
    [{}, '2026-11-29T06:00Z', '2026-11-27T23:00', '2026-11-28T22:59'],
    // Days of 23 and of 25 hours.
    [{}, '2026-03-30T06:00Z', '2026-03-28T23:00', '2026-03-29T21:59'],
    [{}, '2026-10-26T06:00Z', '2026-10-24T22:00', '2026-10-25T22:59'],
    // Just after midnight in Berlin, before it in UTC.
    [{}, '2026-11-28T23:10Z', '2026-11-27T23:00', '2026-11-28T22:59'],
    [{ interval: 'last week' }, '2026-11-30T06:00Z', '2026-11-22T23:00', '2026-11-29T22:59'],
    [{ interval: 'last week' }, '2026-11-29T06:00Z', '2026-11-15T23:00', '2026-11-22T22:59'],
    [{ interval: 'last month' }, '2026-01-01T06:00Z', '2025-11-30T23:00', '2025-12-31T22:59'],
    [{ interval: 'last month' }, '2026-03-31T06:00Z', '2026-01-31T23:00', '2026-02-28T22:59'],
    [SHIFT, '2026-11-29T13:00Z', '2026-11-29T05:00', '2026-11-29T12:59'],
    [SHIFT, '2026-11-29T12:59Z', '2026-11-28T05:00', '2026-11-28T12:59'],
    [NIGHT, '2026-11-29T05:00Z', '2026-11-28T21:00', '2026-11-29T04:59'],
    [NIGHT, '2026-11-29T04:59Z', '2026-11-27T21:00', '2026-11-28T04:59'],
    // A night of nine hours.
    [NIGHT, '2026-10-25T05:00Z', '2026-10-24T20:00', '2026-10-25T04:59'],
  ])('finds for %j at %s from %s to %s', (fields, due, from, to) => {
    const interval = intervalAt(parse({ tz: BERLIN, ...fields }), ms(due));
    expect([text(interval.fromMs), text(interval.toMs)]).toEqual([from, to]);
  });
});

test('looks for a day that never comes, and for the rarest, without delay', () => {
  expect(() => parse({ cron: '0 0 30 2 *' })).toThrow('cron: there is no such day');
  expect(() => parse({ cron: '0 0 31 2,4,6,9,11 *' })).toThrow('cron: there is no such day');
  expect(parse({ cron: '0 0 29 2 *' }).cron).toBe('0 0 29 2 *');
});
