/** The reasons why packets and fields are not stored: their number and their length are bounded. */
import { describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { declarationsOf } from '../../../src/core/model.js';
import { parseBatch } from '../../../src/packets/packet.js';

const NOW = 1_750_000_000_000;
const DECLARED = declarationsOf({
  children: Array.from({ length: 20 }, (_, n) => ({
    type: 'argument',
    id: `${n}`.padEnd(120, 'd'),
    dataType: 'number',
  })),
});

const KINDS: [kind: string, nameOf: (n: number) => string][] = [
  ['operators', (n) => `$${n}`],
  ['long names', (n) => `$${n}`.padEnd(150, 'x')],
  ['names of many quotes', (n) => `$${n}`.padEnd(300, '"')],
  ['names beyond the plane of 16 bits', (n) => `$${n}${'\u{1f600}'.repeat(150)}`],
  ['dotted names', (n) => `a.$${n}`],
  ['declared names', (n) => `${n}`.padEnd(120, 'd')],
];
const badOf = (count: number, nameOf: (n: number) => string): object =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [nameOf(n), 'x']));

describe.each(KINDS)('of %s', (kind, nameOf) => {
  const mostBad = kind === 'declared names' ? 20 : LIMITS.jsonKeys - 1;
  test.each([1, 5, 6, mostBad])('are bounded, and say how many more there are: %d', (bad) => {
    const { refused, incomplete } = parseBatch([badOf(bad, nameOf), { ...badOf(bad, nameOf), n: 1 }], DECLARED, NOW);
    const [{ reason = '' } = {}] = incomplete;
    expect(refused).toEqual([{ index: 0, reason }]);
    expect(reason.length).toBeLessThanOrEqual(LIMITS.refusedReasonCharacters);
    expect(reason.isWellFormed()).toBe(true);
    expect(/; and (\d+) more$/.exec(reason)?.[1]).toBe(bad > 5 ? `${bad - 5}` : undefined);
    expect(() => parseBatch(badOf(bad, nameOf), DECLARED, NOW)).toThrow(
      expect.objectContaining({ status: 400, message: reason }),
    );
  });
});

test('name each of a few', () => {
  const { incomplete } = parseBatch({ n: 1, ...badOf(5, (n) => `$${n}`) }, DECLARED, NOW);
  for (const n of [0, 1, 2, 3, 4]) expect(incomplete[0]?.reason).toContain(`"$${n}": `);
});

test.each([
  ['plain names', ''],
  ['dotted names', 'a.'],
  ['names that cannot be stored', '$'],
])('name the first field too many: %s', (_, prefix) => {
  const names = Array.from({ length: 512 }, (_, n) => `${prefix}p${n}`);
  const body = Object.fromEntries(names.map((name, n) => [name, n]));
  const reason = `the body: more than 500 fields; the first one too many is "${prefix}p500"`;
  expect(() => parseBatch(body, DECLARED, NOW)).toThrow(expect.objectContaining({ status: 400, message: reason }));
  expect(parseBatch([body], DECLARED, NOW).refused).toEqual([{ index: 0, reason }]);
});
