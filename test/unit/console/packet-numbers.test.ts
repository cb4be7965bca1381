/** The numbers of packets that charts can show. */
import { expect, test } from '@jest/globals';
import { numberAt, numberPathsOf } from '../../../src/console/objects/numbers.js';

test('finds numbers up to two levels below a parameter, in the order in which they appear', () => {
  const packets = [
    { speed: 1, engine: { rpm: 900, oil: { heat: 80, deep: { er: 1 } }, name: 'V6' } },
    { 'air, outside': 2, engine: { rpm: 1, hours: 7 }, list: [1], none: null, text: '5' },
  ];
  expect(numberPathsOf(packets.flatMap((packet) => Object.entries(packet)))).toEqual([
    'speed',
    'engine.rpm',
    'engine.oil.heat',
    'air, outside',
    'engine.hours',
  ]);
});

test('bounds the nested ones, and keeps the parameters', () => {
  const cells = Object.fromEntries(Array.from({ length: 400 }, (_, cell) => [`cell-${cell}`, cell]));
  const paths = numberPathsOf(Object.entries({ cells, ...cells, more: cells }));
  expect(paths.filter((path) => path.includes('.'))).toHaveLength(100);
  expect(paths).toEqual(expect.arrayContaining(Object.keys(cells)));
});

test.each<[path: string, value: number | null]>([
  ['speed', 0],
  ['engine.rpm', 900],
  ['engine', null],
  ['engine.rpm.x', null],
  ['none.rpm', null],
  ['text', null],
  ['nothing.at.all', null],
])('reads %s as %p', (path, value) => {
  expect(numberAt({ speed: 0, engine: { rpm: 900 }, none: null, text: '5' }, path)).toBe(value);
});
