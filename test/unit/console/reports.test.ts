/** Reports: named intervals as whole days, what an address asks for, and the order of rows. */
import { describe, expect, test } from '@jest/globals';
import { askedOf, toRequest } from '../../../src/console/reports/asked.js';
import { lastShiftDay, withHour } from '../../../src/console/reports/hours.js';
import { type Row, sortRows, sumsByValue } from '../../../src/console/reports/order.js';
import { type Range, toDayRange } from '../../../src/console/reports/ranges.js';
import { fieldsOf, toCron, toSchedule } from '../../../src/console/reports/schedule-fields.js';
import { parseScheduledReport } from '../../../src/core/scheduled-report.js';

const MONDAY = 1;
const SUNDAY = 0;
const at = (year: number, month: number, day: number): number => new Date(year, month - 1, day, 23, 30).getTime();

describe('an interval by name', () => {
  test.each<[Range, number, string, string]>([
    ['today', MONDAY, '2026-11-27', '2026-11-27'],
    ['yesterday', MONDAY, '2026-11-26', '2026-11-26'],
    ['thisWeek', MONDAY, '2026-11-23', '2026-11-27'],
    ['thisWeek', SUNDAY, '2026-11-22', '2026-11-27'],
    ['lastWeek', MONDAY, '2026-11-16', '2026-11-22'],
    ['lastWeek', SUNDAY, '2026-11-15', '2026-11-21'],
    ['thisMonth', MONDAY, '2026-11-01', '2026-11-27'],
    ['lastMonth', MONDAY, '2026-10-01', '2026-10-31'],
  ])('is whole days: %s, weeks from day %s on', (range, firstDay, from, to) => {
    expect(toDayRange(at(2026, 11, 27), range, firstDay)).toEqual({ from, to });
  });

  test.each<[Range, number, string, string]>([
    ['yesterday', at(2026, 1, 1), '2025-12-31', '2025-12-31'],
    ['lastWeek', at(2026, 1, 1), '2025-12-22', '2025-12-28'],
    ['lastMonth', at(2026, 1, 31), '2025-12-01', '2025-12-31'],
    ['lastMonth', at(2024, 3, 31), '2024-02-01', '2024-02-29'],
    ['thisMonth', at(2026, 2, 28), '2026-02-01', '2026-02-28'],
    ['yesterday', at(2024, 3, 1), '2024-02-29', '2024-02-29'],
  ])('reaches over the ends of months and years: %s', (range, nowMs, from, to) => {
    expect(toDayRange(nowMs, range, MONDAY)).toEqual({ from, to });
  });
});

describe('what an address asks for', () => {
  const nowMs = at(2026, 11, 27);
  const today = { from: '2026-11-27', to: '2026-11-27', range: 'today' };

  test.each([
    [{}, { kind: 'mileage', ...today }],
    [
      { kind: 'nothing', range: 'never' },
      { kind: 'mileage', ...today },
    ],
    [
      { kind: 'stops', from: '2026-11-01', to: '2026-11-03' },
      { kind: 'stops', from: '2026-11-01', to: '2026-11-03', range: null },
    ],
    [
      { from: '2026-11-03', to: '2026-11-01' },
      { kind: 'mileage', ...today },
    ],
    [{ from: '2026-11-03' }, { kind: 'mileage', ...today }],
  ])('is complete, whatever is in it: %j', (query, asked) => {
    expect(askedOf(query as Record<string, string>, nowMs, MONDAY)).toEqual(asked);
  });

  test('is sent without what the kind has no use for', () => {
    const query = { group: 'g', every: '1 day', param: 'door', sort: '-distance', objects: '', range: 'today' };
    const of = { group: 'g', from: today.from, to: today.to, tz: 'UTC' };
    const sentFor = (kind: string) => toRequest(query, askedOf({ ...query, kind }, nowMs, MONDAY), 'UTC');
    expect(sentFor('mileage')).toEqual({ ...of, every: '1 day' });
    expect(sentFor('trips')).toEqual(of);
    expect(sentFor('utilization')).toEqual({ ...of, every: '1 day', param: 'door' });
  });
});

describe('the hours of a shift', () => {
  const nowMs = new Date(2026, 10, 27, 14, 30).getTime();
  const requestOf = (query: Record<string, string>) =>
    toRequest(query, askedOf({ kind: 'shift', ...query }, nowMs, MONDAY), 'UTC');

  test.each([
    [{ hours: '06:00-14:00' }, '2026-11-27T06:00', '2026-11-27T14:00'],
    [{ hours: '22:00-06:00', range: 'yesterday' }, '2026-11-26T22:00', '2026-11-27T06:00'],
    [{ hours: '22:00-06:00', from: '2026-10-31', to: '2026-10-31' }, '2026-10-31T22:00', '2026-11-01T06:00'],
    [{ range: 'lastShift' }, '2026-11-27T06:00', '2026-11-27T14:00'],
    [{ range: 'lastShift', hours: '06:30-14:31' }, '2026-11-26T06:30', '2026-11-26T14:31'],
    [{ range: 'lastShift', hours: '22:00-06:00' }, '2026-11-26T22:00', '2026-11-27T06:00'],
    [{ range: 'lastShift', hours: '22:00-15:00' }, '2026-11-25T22:00', '2026-11-26T15:00'],
    [{ range: 'lastShift', kind: 'mileage' }, '2026-11-27', '2026-11-27'],
    [{ hours: '25:00-06:00' }, '2026-11-27', '2026-11-27'],
    [{ hours: '06:00' }, '2026-11-27', '2026-11-27'],
  ])('are those of the address: %j', (query, from, to) => {
    expect(requestOf(query as Record<string, string>)).toMatchObject({ from, to });
  });

  test('are eight, until both ends are chosen', () => {
    expect(withHour(undefined, 'from', '20:00')).toBe('20:00-04:00');
    expect(withHour(undefined, 'to', '06:00')).toBe('22:00-06:00');
    expect(withHour({ from: '20:00', to: '04:00' }, 'to', '05:30')).toBe('20:00-05:30');
    expect(withHour({ from: '20:00', to: '04:00' }, 'from', '')).toBe('');
  });

  test('are over at their end, not before', () => {
    const at14 = new Date(2026, 10, 27, 14).getTime();
    expect(lastShiftDay(at14, { from: '06:00', to: '14:00' })).toBe('2026-11-27');
    expect(lastShiftDay(at14 - 1, { from: '06:00', to: '14:00' })).toBe('2026-11-26');
  });
});

describe('a report by mail', () => {
  const asked = (query: Record<string, string>) => askedOf(query, at(2026, 11, 27), MONDAY);
  const context = { query: {}, me: '65a00000000000000000000b', tz: 'Europe/Berlin', language: 'de' } as const;

  test.each([
    [{ range: 'lastWeek' }, 'last week', '0 6 * * mon'],
    [{ range: 'thisMonth' }, 'last month', '0 6 1 * *'],
    [{ range: 'today' }, 'yesterday', '0 6 * * *'],
    [{ from: '2026-11-01', to: '2026-11-03' }, 'last week', '0 6 * * mon'],
    [{ kind: 'shift', range: 'lastShift', hours: '22:00-06:15' }, 'last shift', '15 6 * * *'],
  ])('begins with what the page shows: %j', (query, interval, cron) => {
    const shown = asked(query as Record<string, string>);
    const body = toSchedule(fieldsOf(shown, ' Report '), { ...context, kind: shown.kind });
    expect(body).toMatchObject({ name: 'Report', report: shown.kind, interval, cron, to: { users: [context.me] } });
    expect(() => parseScheduledReport(body)).not.toThrow();
  });

  test.each(['day', 'workdays', 'mon', 'sun', 'month'] as const)(
    'has a time that the service knows: %s',
    (frequency) => {
      const fields = { ...fieldsOf(asked({}), 'x'), frequency, time: '17:05', to: 'group 65a00000000000000000000a' };
      const body = toSchedule(fields, { ...context, kind: 'trips' });
      expect(body).toMatchObject({ cron: toCron(frequency, '17:05'), to: { group: '65a00000000000000000000a' } });
      expect(() => parseScheduledReport(body)).not.toThrow();
    },
  );
});

test('sorts numbers by size and texts by their numbers, without a value first', () => {
  const rows = [
    { name: 'van 10', distance: 9 },
    { name: 'van 2', distance: 100 },
    { name: 'van 1', distance: null },
  ] as unknown as Row[];
  const namesBy = (sort: string | undefined): string[] => sortRows(rows, sort).map(({ name }) => name);
  expect(namesBy(undefined)).toEqual(['van 10', 'van 2', 'van 1']);
  expect(namesBy('name')).toEqual(['van 1', 'van 2', 'van 10']);
  expect(namesBy('-name')).toEqual(['van 10', 'van 2', 'van 1']);
  expect(namesBy('distance')).toEqual(['van 1', 'van 10', 'van 2']);
  expect(namesBy('-distance')).toEqual(['van 2', 'van 10', 'van 1']);
});

test('adds up how long each value was there in all rows, the longest first', () => {
  const rows = [
    { object: 'a', value: 'true', duration: 2, share: 0.2, times: 1 },
    { object: 'a', value: 'false', duration: 8, share: 0.8, times: 2 },
    { object: 'b', value: 'true', duration: 1, share: 0.1, times: 1 },
    { object: 'b', value: null, duration: 1, share: 0.1, times: 3 },
  ] as unknown as Row[];
  expect(sumsByValue(rows)).toEqual([
    { value: 'false', duration: 8, share: 8 / 12, times: 2 },
    { value: 'true', duration: 3, share: 3 / 12, times: 2 },
    { value: null, duration: 1, share: 1 / 12, times: 3 },
  ]);
  expect(sumsByValue([])).toEqual([]);
});
