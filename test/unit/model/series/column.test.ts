/** Series held to their definition, for random values and buckets. */
import { describe, expect, test } from '@jest/globals';
import { Column } from '../../../../src/history/series/column.js';
import { parseFunction } from '../../../../src/history/series/functions.js';
import { createValueStores } from '../../../../src/history/series/value-store.js';
import { type NaiveQuery, naiveSeries, type Reading, type SeriesValue } from '../../../support/naive-series.js';
import { fc } from '../../../support/runs.js';

const NAMES = [
  'first',
  'last',
  'min',
  'max',
  'avg',
  'sum',
  'count',
  'time-weighted-avg',
  'increase',
  'rate',
  'derivative',
  'p50',
  'p95',
  'p99',
  'p1',
  'duration',
  'duration:on',
  'duration:true',
  'duration:2.5',
  'duration:off',
];
const functions = NAMES.flatMap((name) => parseFunction(name) ?? []);
const FROM_MS = 1_000;

/** As the feed passes them on: of those before the interval, the last one within the gap. */
function computed(readings: readonly Reading[], query: NaiveQuery): Map<string, (number | null)[]> | null {
  const { fromMs, toMs, starts, gapMs, nowMs, counterBits = null } = query;
  const buckets = { fromMs, starts: Float64Array.from(starts), endMs: toMs + 1 };
  const holding = { gapMs, untilMs: Math.min(toMs + 1, Math.max(nowMs, fromMs)) };
  const column = new Column({ buckets, functions, holding, counterBits, createStore: createValueStores() });
  const known = readings.filter(([, value]) => value !== null && value !== undefined);
  const before = known.filter(([at]) => at < fromMs && gapMs !== null && at > fromMs - gapMs).slice(-1);
  for (const [at, value] of [...before, ...known.filter(([at]) => at >= fromMs && at <= toMs)]) {
    if (typeof value === 'number' || typeof value === 'boolean') column.addNumber(at, Number(value));
    else column.addOther(at, typeof value === 'string' ? value : null);
  }
  column.finish();
  for (const work of column.takeWork()) for (const _ of work);
  const results = column.results();
  if (results === null) return null;
  return new Map(
    results.map(([name, values]) => [name, Array.from(values, (one) => (Number.isNaN(one) ? null : one))]),
  );
}

// Quarters: their sums are exact, in whatever order.
const value: fc.Arbitrary<SeriesValue> = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -400, max: 400 }).map((quarters) => quarters / 4) },
  fc.boolean(),
  fc.constantFrom('on', 'off', '2.5', ''),
  fc.constantFrom<SeriesValue>(null, undefined, {}, [1]),
);
/** Where one is after these steps, from `start` on. */
function walk(start: number, steps: readonly number[]): number[] {
  const places: number[] = [];
  for (const step of steps) places.push((places.at(-1) ?? start) + step);
  return places;
}
const times = fc.array(fc.tuple(fc.integer({ min: 0, max: 60 }), value), { maxLength: 60 }).map((steps) => {
  const places = walk(
    FROM_MS - 100,
    steps.map(([step]) => step),
  );
  return steps.map(([, one], nth): Reading => [places[nth] as number, one]);
});
const buckets = fc
  .tuple(fc.integer({ min: 0, max: 80 }), fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 12 }))
  .map(([early, steps]) => [FROM_MS - early, ...walk(FROM_MS - early, steps).filter((start) => start > FROM_MS)]);

describe('a column', () => {
  test('computes each function by its definition', () => {
    const query = fc.record({
      starts: buckets,
      lengthMs: fc.integer({ min: 0, max: 400 }),
      gapMs: fc.option(fc.integer({ min: 1, max: 200 })),
      nowMs: fc.integer({ min: 900, max: 6_000 }),
      counterBits: fc.constantFrom(null, 5, 16, 32),
    });
    fc.assert(
      fc.property(times, query, (readings, { starts, lengthMs, ...given }) => {
        const toMs = Math.max(FROM_MS, starts.at(-1) as number) + lengthMs;
        const asked: NaiveQuery = { fromMs: FROM_MS, toMs, starts, ...given };
        const found = computed(readings, asked);
        const expected = NAMES.map((name) => [name, naiveSeries(readings, asked, name)]);
        expect(NAMES.map((name) => [name, found?.get(name) ?? null])).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  test('computes exact percentiles of many values of any sign and size', () => {
    const random = (nth: number): number => ((nth * 7_919) % 100_003) - 50_000;
    const values = Array.from({ length: 30_000 }, (_, nth) => (nth % 7 === 0 ? random(nth) / 1e9 : random(nth) * 1e6));
    const readings = values.map((one, nth): Reading => [FROM_MS + nth, one]);
    const query = { fromMs: FROM_MS, toMs: FROM_MS + 99_999, starts: [FROM_MS], gapMs: null, nowMs: 1e6 };
    const found = computed(readings, query);
    for (const name of ['p1', 'p50', 'p95', 'p99']) {
      expect([name, found?.get(name)]).toEqual([name, naiveSeries(readings, query, name)]);
    }
  });

  test('keeps a bounded number of values for percentiles', () => {
    const store = createValueStores(10)();
    for (let nth = 0; nth < 10; nth++) store.add(nth);
    expect(() => store.add(10)).toThrow('more than 10 values');
  });

  test('counts the values for percentiles until their bucket is done', () => {
    const create = createValueStores(10);
    const one = create();
    const other = create();
    for (let nth = 0; nth < 8; nth++) one.add(nth);
    const { values, release } = one.take();
    expect(Array.from(values)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    other.add(1);
    other.add(2);
    expect(() => other.add(3)).toThrow();
    release();
    one.add(4);
  });
});
