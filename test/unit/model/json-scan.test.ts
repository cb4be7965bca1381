/** How a JSON text is built, before it becomes values. */
import { describe, expect, test } from '@jest/globals';
import { JsonScan } from '../../../src/core/json-scan.js';
import { LIMITS } from '../../../src/core/limits.js';
import { fc } from '../../support/runs.js';

/** Hands the text over in pieces of this many bytes. */
function scan(text: string, chunkBytes = 1_000): { fault: string | null; scan: JsonScan } {
  const bytes = Buffer.from(text);
  const scanner = new JsonScan();
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const fault = scanner.take(bytes.subarray(at, at + chunkBytes));
    if (fault !== null) return { fault, scan: scanner };
  }
  return { fault: null, scan: scanner };
}

const repeated = (item: string, count: number): string => `[${Array(count).fill(item).join(',')}]`;
const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
const fields = (count: number): string => `{${Array.from({ length: count }, (_, nth) => `"f${nth}":1`).join(',')}}`;

describe('the limits of a JSON text', () => {
  const { jsonDepth, jsonArrayItems, jsonKeys, bodyContainers, bodyValues, bodyItemValues } = LIMITS;
  const long = repeated('1', jsonArrayItems);
  const wide = (values: number): string =>
    `{"a":[${Array(Math.ceil(values / 9_000))
      .fill(repeated('1', 9_000))
      .join(',')}]}`;

  test.each([
    ['a list of many items', repeated('{}', jsonArrayItems), repeated('{}', jsonArrayItems + 1), 'items'],
    ['many fields', fields(jsonKeys), fields(jsonKeys + 1), 'fields'],
    ['objects as deep as may be', nested(jsonDepth + 1), nested(jsonDepth + 2), 'deep'],
    [
      'many objects in all',
      repeated(repeated('{}', 9), bodyContainers / 10 - 1),
      repeated(repeated('{}', 99), bodyContainers / 100),
      'objects and lists',
    ],
    ['many values in all', repeated(long, 90), repeated(long, bodyValues / jsonArrayItems + 1), 'values'],
    ['deep lists in lists', '['.repeat(bodyContainers), '['.repeat(bodyContainers + 1), 'objects and lists'],
    [
      'many values in one item',
      repeated(repeated('1', bodyItemValues), 2),
      `[${repeated('1', bodyItemValues + 2)}]`,
      'in one object',
    ],
    ['many values in one object', wide(bodyItemValues - 9_000), wide(bodyItemValues + 9_000), 'in one object'],
  ])('allow %s, but not one more', (_, most, more, why) => {
    expect(scan(most).fault).toBeNull();
    expect(scan(more).fault).toContain(why);
  });

  test.each([
    ['too many fields', fields(jsonKeys + 1)],
    ['too many items', `{"a":${repeated('1', jsonArrayItems + 1)}}`],
    ['too deep values', nested(jsonDepth + 5)],
  ])('leave an item of a list to the check of each item: %s', (_, item) => {
    expect(scan(`[{"n":1},${item},{"n":2}]`).fault).toBeNull();
    expect(scan(item).fault).not.toBeNull();
  });

  test('are checked while the text arrives', () => {
    const scanner = new JsonScan();
    expect(scanner.take(Buffer.from('{"a":'.repeat(jsonDepth + 2)))).toContain('deep');
  });

  test('ignore the content of strings', () => {
    const text = JSON.stringify(Array(100).fill('[{,"\\'.repeat(500)));
    for (const chunkBytes of [1, 7, 1_000]) expect(scan(text, chunkBytes).fault).toBeNull();
  });
});

describe('the pieces of a list', () => {
  const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.string({ unit: 'grapheme', maxLength: 50 }));

  /** A list of so many items that it has more than one piece. */
  const list = fc.tuple(fc.array(value, { minLength: 1, maxLength: 20 }), fc.nat(2)).map(([items, indent]) => {
    const filler = 'x'.repeat(LIMITS.bodyPieceBytes / 4);
    return JSON.stringify([...items, filler, ...items, filler, filler, ...items, filler, filler, filler], null, indent);
  });

  test('contain all of it, in order', () => {
    fc.assert(
      fc.property(list, (text) => {
        const bytes = Buffer.from(text);
        const pieces = scan(text, 8_192).scan.pieces() ?? [];
        expect(pieces.length).toBeGreaterThan(1);
        const parts = pieces.map(({ begin, end }) => JSON.parse(`[${bytes.toString('utf8', begin, end)}]`));
        expect(parts.map(({ length }) => length)).toEqual(pieces.map(({ items }) => items));
        expect(parts.flat()).toEqual(JSON.parse(text));
      }),
      { numRuns: 50 },
    );
  });

  test.each(['{"a":[1,2]}', '1', '', '[1,2', '[1}', '[1,2][3]', '{}[1]', '[1],[2]'])('do not exist for %j', (text) => {
    expect(scan(text).scan.pieces()).toBeNull();
  });
});
