/** The points of charts: where lines are drawn, where they break, and what stands alone. */
import { expect, test } from '@jest/globals';
import { findDensePart, findSingle, toCharts } from '../../../src/console/objects/chart-data.js';

const MINUTE_MS = 60_000;

/** A chart of buckets of a minute each; null for an empty bucket. */
function chartsOf(columns: Record<string, readonly (number | null)[]>) {
  const length = Math.max(...Object.values(columns).map((column) => column.length));
  const times = Array.from({ length }, (_, minute) => minute * MINUTE_MS);
  const all = Object.entries(columns).map(([name, last]) => [name, { last, min: last, max: last }] as const);
  const charts = toCharts(times, new Map(all), MINUTE_MS);
  return Object.fromEntries([...charts].map(([name, { times, values }]) => [name, { times, values }]));
}

const every = (minutes: number, count: number) =>
  Array.from({ length: minutes * count }, (_, minute) => (minute % minutes === 0 ? minute : null));

test('joins the values of a device that sends once an hour', () => {
  expect(chartsOf({ level: every(60, 4) }).level).toEqual({
    times: [0, 3_600, 7_200, 10_800],
    values: [0, 60, 120, 180],
  });
});

test('breaks the line where a device was silent for longer than it usually is', () => {
  const level = [...every(1, 10), ...Array(20).fill(null), 7, 8];
  expect(chartsOf({ level }).level?.values).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, null, 7, 8]);
});

test('begins and ends all charts at the same time', () => {
  const { level, speed, none } = chartsOf({ level: [1, 2, null, null], speed: [null, 3, null, 4], none: [] });
  expect(level).toEqual({ times: [0, 60, 180], values: [1, 2, null] });
  expect(speed).toEqual({ times: [0, 60, 180], values: [null, 3, 4] });
  expect(none).toEqual({ times: [0, 180], values: [null, null] });
  expect(chartsOf({ level: [null, null] }).level).toEqual({ times: [], values: [] });
  expect(chartsOf({ level: [null, 5] }).level).toEqual({ times: [60], values: [5] });
});

test('finds values without neighbours', () => {
  expect(findSingle([1, null, 2, 3, null, 4])).toEqual([0, 5]);
  expect(findSingle([1, 2, null])).toBeNull();
  expect(findSingle([])).toBeNull();
  expect(findSingle([9])).toEqual([0]);
});

test('finds the part of an interval that has data, if it is a small one', () => {
  const times = Array.from({ length: 100 }, (_, index) => index);
  const columnsOf = (...filled: number[]) => {
    const last = times.map((index) => (filled.includes(index) ? 7 : null));
    return { last, min: last, max: last };
  };
  expect(findDensePart(times, [columnsOf(40, 50, 60)], 100)).toEqual([40, 60]);
  expect(findDensePart(times, [columnsOf(40), columnsOf(50)], 100)).toEqual([40, 50]);
  expect(findDensePart(times, [columnsOf(99)], 100)).toEqual([99, 99]);
  expect(findDensePart(times, [columnsOf(40, 65)], 100)).toBeNull();
  expect(findDensePart(times, [columnsOf(40), columnsOf(90)], 100)).toBeNull();
  expect(findDensePart(times, [columnsOf()], 100)).toBeNull();
  expect(findDensePart([], [], 100)).toBeNull();
});
