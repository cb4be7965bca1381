/** Where a text stops being JSON. */
import { expect, test } from '@jest/globals';
import { findJsonFault } from '../../../src/core/json-fault.js';
import { LIMITS } from '../../../src/core/limits.js';
import { jsonText } from '../../support/any-json.js';
import { fc } from '../../support/runs.js';

test.each([
  ['', 0],
  ['  ', 2],
  ['{"a":', 5],
  ['{"a": }', 6],
  ['{"a":1,}', 7],
  ['{"a":1 "b":2}', 7],
  ['{"a" 1}', 5],
  ['{a:1}', 1],
  ["{'a':1}", 1],
  ['{"a":NaN}', 5],
  ['{"a":01}', 6],
  ['{"a":.5}', 5],
  ['{"a":+5}', 5],
  ['[1,2', 4],
  ['[1,,2]', 3],
  ['[1}', 2],
  ['{"a":1]', 6],
  ['[] []', 3],
  ['id=7&lat=1', 0],
  ['["a\nb"]', 1],
  ['["a\\x"]', 1],
  ['[tru]', 1],
])('finds the fault of %j at %i', (text, at) => {
  expect(() => JSON.parse(text)).toThrow();
  expect(findJsonFault(text)).toBe(at);
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test('finds a fault exactly where JSON.parse does, in whole texts, and in those with a part too much or missing', () => {
  const change = fc.tuple(
    fc.nat(),
    fc.nat(3),
    fc.constantFrom('', ',', ':', '}', ']', '"', '{', '[', '0', '-', '\\', 'e', ' ', 'x', '\0'),
  );
  fc.assert(
    fc.property(jsonText, change, (whole, [at, removed, added]) => {
      expect(findJsonFault(whole)).toBeNull();
      const index = at % (whole.length + 1);
      const text = whole.slice(0, index) + added + whole.slice(index + removed);
      expect(findJsonFault(text) === null).toBe(isJson(text));
    }),
  );
});

test('looks through text of any content, but not of any length', () => {
  expect(findJsonFault(`"${'\\"x'.repeat(LIMITS.bigBodyBytes / 4)}`)).toBe(0);
  expect(findJsonFault('['.repeat(LIMITS.bigBodyBytes))).toBe(LIMITS.bigBodyBytes);
  expect(findJsonFault(`${' '.repeat(LIMITS.bigBodyBytes)}x`)).toBeNull();
});
