/** Compiled patterns are kept while they are few and small. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';
import { Patterns } from '../../../src/core/rule/patterns.js';
import { patternSize } from '../../../src/core/schema/pattern.js';

Object.assign(LIMITS, { expressionPatterns: 10, expressionPatternsKept: 1_000 });

test('keeps so many patterns', () => {
  const patterns = new Patterns();
  const first = patterns.find('a0');
  expect(patterns.find('a0')).toBe(first);
  for (let nth = 0; nth < 100; nth++) {
    patterns.find(`a${nth}`);
    expect(patterns.count).toBeLessThanOrEqual(LIMITS.expressionPatterns);
  }
  expect(patterns.find('a0')).not.toBe(first);
});

test('keeps patterns of so large a size together', () => {
  const patterns = new Patterns();
  for (let nth = 0; nth < 50; nth++) {
    patterns.find(`(a{9}){5}${nth}`);
    expect(patterns.size).toBeLessThanOrEqual(LIMITS.expressionPatternsKept);
  }
  expect(patterns.size).toBeGreaterThanOrEqual(patternSize('(a{9}){5}00'));
});

test('keeps nothing of an invalid pattern', () => {
  const patterns = new Patterns();
  expect(() => patterns.find('(')).toThrow();
  expect([patterns.count, patterns.size]).toEqual([0, 0]);
});
