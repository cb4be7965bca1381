/** Buckets of the calendar, held to the clocks of their zones as Intl tells of them. */
import { describe, expect, test } from '@jest/globals';
import { findZone, type Zone } from '../../../../src/core/zone.js';
import { bucketStarts, type Every, parseEvery } from '../../../../src/history/series/calendar.js';
import { fc } from '../../../support/runs.js';

const HOUR_MS = 3_600_000;
const QUARTER_MS = HOUR_MS / 4;

const zoneOf = (name: string): Zone => findZone(name) ?? fail(name);
const everyOf = (text: string): Every => parseEvery(text) ?? fail(text);
function fail(text: string): never {
  throw new Error(text);
}

function starts(every: string, zone: string, from: string, to: string): string[] {
  const found: string[] = [];
  for (const start of bucketStarts(everyOf(every), zoneOf(zone), Date.parse(from))) {
    if (start > Date.parse(to)) return found;
    found.push(new Date(start).toISOString().slice(0, 16));
  }
  return found;
}

test.each(['1000 y', '4000 quarters', '12000 months', '52285 w', '366000 d'])(
  'takes buckets up to a thousand years: %s',
  (text) => {
    const [first, second] = bucketStarts(everyOf(text), zoneOf('Europe/Berlin'), Date.parse('9999-12-31'));
    expect(second).toBeGreaterThan(first as number);
  },
);

test.each(['1001 y', '4001 quarters', '12001 months', '52286 w', '366001 d', '999999999 y'])(
  'refuses longer ones, whose next start may be no date: %s',
  (text) => {
    expect(parseEvery(text)).toBeNull();
  },
);

describe('buckets', () => {
  test.each<[about: string, every: string, zone: string, from: string, to: string, starts: string[]]>([
    [
      'hours of UTC',
      '1 h',
      'UTC',
      '2026-01-01T00:30Z',
      '2026-01-01T02:00Z',
      ['2026-01-01T00:00', '2026-01-01T01:00', '2026-01-01T02:00'],
    ],
    [
      'the 23 hours of a day',
      '1 d',
      'Europe/Berlin',
      '2026-03-28T12:00Z',
      '2026-03-30T12:00Z',
      ['2026-03-27T23:00', '2026-03-28T23:00', '2026-03-29T22:00'],
    ],
    [
      'the 25 hours of a day',
      'day',
      'Europe/Berlin',
      '2026-10-24T12:00Z',
      '2026-10-26T12:00Z',
      ['2026-10-23T22:00', '2026-10-24T22:00', '2026-10-25T23:00'],
    ],
    [
      'an hour that comes twice',
      '1 hour',
      'Europe/Berlin',
      '2026-10-24T23:00Z',
      '2026-10-25T02:00Z',
      ['2026-10-24T23:00', '2026-10-25T00:00', '2026-10-25T01:00', '2026-10-25T02:00'],
    ],
    [
      'six hours of a long day',
      '6h',
      'Europe/Berlin',
      '2026-10-24T22:00Z',
      '2026-10-25T18:00Z',
      ['2026-10-24T22:00', '2026-10-25T05:00', '2026-10-25T11:00', '2026-10-25T17:00'],
    ],
    [
      'six hours of a short day',
      '6h',
      'Europe/Berlin',
      '2026-03-28T23:00Z',
      '2026-03-29T18:00Z',
      ['2026-03-28T23:00', '2026-03-29T04:00', '2026-03-29T10:00', '2026-03-29T16:00'],
    ],
    [
      'a change of half an hour',
      '1 h',
      'Australia/Lord_Howe',
      '2026-04-04T13:30Z',
      '2026-04-04T17:00Z',
      ['2026-04-04T13:00', '2026-04-04T14:00', '2026-04-04T15:30', '2026-04-04T16:30'],
    ],
    [
      'a zone that is three quarters of an hour off',
      '1 h',
      'Asia/Kathmandu',
      '2026-01-01T00:00Z',
      '2026-01-01T01:30Z',
      ['2025-12-31T23:15', '2026-01-01T00:15', '2026-01-01T01:15'],
    ],
    [
      'a day without midnight',
      '1 d',
      'America/Sao_Paulo',
      '2018-11-03T12:00Z',
      '2018-11-05T12:00Z',
      ['2018-11-03T03:00', '2018-11-04T03:00', '2018-11-05T02:00'],
    ],
    [
      'a day that a zone has skipped',
      '1 d',
      'Pacific/Apia',
      '2011-12-29T12:00Z',
      '2012-01-01T00:00Z',
      ['2011-12-29T10:00', '2011-12-30T10:00', '2011-12-31T10:00'],
    ],
    [
      'weeks, from Monday on',
      '1 week',
      'Europe/Berlin',
      '2026-11-26T00:00Z',
      '2026-12-08T00:00Z',
      ['2026-11-22T23:00', '2026-11-29T23:00', '2026-12-06T23:00'],
    ],
    [
      'months',
      '1 month',
      'America/New_York',
      '2026-02-15T00:00Z',
      '2026-04-15T00:00Z',
      ['2026-02-01T05:00', '2026-03-01T05:00', '2026-04-01T04:00'],
    ],
    [
      'quarters',
      '1 quarter',
      'UTC',
      '2026-02-15T00:00Z',
      '2026-10-15T00:00Z',
      ['2026-01-01T00:00', '2026-04-01T00:00', '2026-07-01T00:00', '2026-10-01T00:00'],
    ],
    [
      'years, of before 1970 too',
      '1 y',
      'UTC',
      '1968-02-15T00:00Z',
      '1970-02-01T00:00Z',
      ['1968-01-01T00:00', '1969-01-01T00:00', '1970-01-01T00:00'],
    ],
  ])('follow %s', (_, every, zone, from, to, expected) => {
    expect(starts(every, zone, from, to)).toEqual(expected);
  });

  test('begin exactly where the clock of their zone shows a multiple of their length', () => {
    const zones = [
      'UTC',
      'Europe/Berlin',
      'Australia/Lord_Howe',
      'Asia/Kathmandu',
      'Africa/Casablanca',
      'America/St_Johns',
    ];
    const everies = ['15 min', '30 min', '1 h', '2 h', '6 h', '12 h', '7 h'];
    const asked = fc.tuple(
      fc.constantFrom(...zones),
      fc.constantFrom(...everies),
      fc.integer({ min: 0, max: 24 * 366 }),
    );
    fc.assert(
      fc.property(asked, ([name, text, hours]) => {
        const zone = zoneOf(name);
        const every = everyOf(text) as Every & { kind: 'ms' };
        const fromMs = Date.UTC(2026, 0, 1) + hours * HOUR_MS;
        const toMs = fromMs + 48 * HOUR_MS;
        const local = offsetOf(name);
        const expected: number[] = [];
        for (let at = fromMs; at <= toMs; at += QUARTER_MS)
          if ((at + local(at)) % every.stepMs === 0) expected.push(at);
        const found: number[] = [];
        for (const start of bucketStarts(every, zone, fromMs)) {
          if (start > toMs) break;
          found.push(start);
        }
        expect(found[0]).toBeLessThanOrEqual(fromMs);
        expect(found.filter((start) => start >= fromMs)).toEqual(expected);
      }),
      { numRuns: 60 },
    );
  });
});

/** By another way than the service's: the clock's face. */
function offsetOf(zone: string): (atMs: number) => number {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
  return (atMs) => Date.parse(`${format.format(atMs).replace(' ', 'T')}Z`) - atMs;
}

describe('a length', () => {
  test.each([
    ['1M', { kind: 'months', months: 1 }],
    ['1m', { kind: 'ms', stepMs: 60_000, originMs: 0 }],
    ['90 seconds', { kind: 'ms', stepMs: 90_000, originMs: 0 }],
    ['2 YEARS', { kind: 'months', months: 24 }],
  ])('is parsed: %s', (text, every) => expect(parseEvery(text)).toEqual(every));

  test.each(['', '1', '0 h', '-1 h', '1.5 h', 'x', '1 fortnight', '1 h 2 m'])('is refused: %j', (text) => {
    expect(parseEvery(text)).toBeNull();
  });
});

test.each(['', 'Nowhere/Else', '+02:00', 'Europe/Berlin ', '../etc', 'x'.repeat(100)])(
  'refuses the zone %j',
  (name) => {
    expect(findZone(name)).toBeNull();
  },
);
