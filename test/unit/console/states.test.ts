/** What an object was over time: which parameters are states, and when each value held. */
import { expect, test } from '@jest/globals';
import { segmentsOf, statePathsOf, totalsOf } from '../../../src/console/objects/states.js';

const MINUTE_MS = 60_000;
const pathsOf = (...packets: object[]) => statePathsOf(packets.map((packet) => Object.entries(packet)));
const every = (minutes: number, ...values: unknown[]) =>
  values.map((door, index) => ({ time: index * minutes * MINUTE_MS, ...(door !== undefined && { door }) }));
const inMinutes = (segments: ReturnType<typeof segmentsOf>) =>
  segments.map(({ value, fromMs, toMs }) => [value, fromMs / MINUTE_MS, toMs / MINUTE_MS]);

test('finds booleans and texts, also nested ones, those that change first', () => {
  const found = pathsOf(
    { firmware: '1.2', door: true, speed: 3, engine: { mode: 'idle', rpm: 900, list: ['a'] } },
    { firmware: '1.2', door: false, speed: 4, engine: { mode: 'drive', rpm: 2_000 } },
  );
  expect(found).toEqual([
    { path: 'door', values: [true, false] },
    { path: 'engine.mode', values: ['idle', 'drive'] },
    { path: 'firmware', values: ['1.2'] },
  ]);
});

test('finds numbers whose states the model declares', () => {
  const packets = [
    { mode: 1, speed: 3, engine: { mode: 0 } },
    { mode: 2, speed: 4, engine: { mode: 0 } },
  ];
  const found = statePathsOf(
    packets.map((packet) => Object.entries(packet)),
    new Set(['mode', 'engine.mode']),
  );
  expect(found).toEqual([
    { path: 'mode', values: [1, 2] },
    { path: 'engine.mode', values: [0] },
  ]);
  const timed = packets.map((packet, index) => ({ time: index * MINUTE_MS, ...packet }));
  expect(inMinutes(segmentsOf(timed, 'mode', true))).toEqual([
    [1, 0, 1],
    [2, 1, 1],
  ]);
});

test.each([
  ['numbers', [1, 0]],
  ['texts that are sometimes numbers', ['a', 7]],
  ['a message that is different each time', Array.from({ length: 13 }, (_, index) => `message ${index}`)],
  ['long texts', ['x'.repeat(61)]],
  ['lists', [[true], [false]]],
  ['nothing', [null, null]],
])('takes no states from %s', (_, values) => {
  expect(pathsOf(...values.map((value) => ({ value })))).toEqual([]);
});

test('looks at 100 nested values at most, and at every parameter of the first level alike', () => {
  const table = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`flag${index}`, index % 2 === 0]));
  expect(pathsOf({ table })).toHaveLength(100);
});

test('lets a value hold until the next one, and the last one until the last packet', () => {
  const segments = segmentsOf(every(1, true, true, false, undefined, true, undefined, undefined), 'door');
  expect(inMinutes(segments)).toEqual([
    [true, 0, 2],
    [false, 2, 4],
    [true, 4, 6],
  ]);
  expect(totalsOf(segments)).toEqual([
    { value: true, lengthMs: 4 * MINUTE_MS },
    { value: false, lengthMs: 2 * MINUTE_MS },
  ]);
});

test('says nothing of a time in which the device was silent for longer than it usually is', () => {
  const packets = [...every(1, true, true), ...every(1, true, false).map((one) => ({ ...one, time: one.time + 6e6 }))];
  expect(inMinutes(segmentsOf(packets, 'door'))).toEqual([
    [true, 0, 1],
    [true, 100, 101],
    [false, 101, 101],
  ]);
});

test('takes the values of a device that reports every four hours as those of all the time', () => {
  expect(inMinutes(segmentsOf(every(240, 'a', 'a', 'b'), 'door'))).toEqual([
    ['a', 0, 480],
    ['b', 480, 480],
  ]);
});

test('has neither segments nor totals without a value', () => {
  expect(segmentsOf([], 'door')).toEqual([]);
  expect(totalsOf(segmentsOf(every(1, null, 3), 'door'))).toEqual([]);
});
