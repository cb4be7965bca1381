/** Patterns of clients: RE2's language, matched step by step, so that no pattern and no text stops the process. */
import { describe, expect, test } from '@jest/globals';
import { RE2JS } from 're2js';
import { LIMITS } from '../../../src/core/limits.js';
import { compilePattern, patternSize } from '../../../src/core/schema/pattern.js';
import { Overrun, StepBudget } from '../../../src/core/schema/step-budget.js';
import { fc, runsOf } from '../../support/runs.js';

const unbounded = () => new StepBudget(() => 0);
const matches = (source: string, text: string): boolean => compilePattern(source).test(text, unbounded());

describe('a pattern', () => {
  const PATTERNS = [
    '',
    'a',
    '^',
    '$',
    '^$',
    '^a',
    'a$',
    '^a$',
    '.',
    '^.$',
    '(?s)^.$',
    'a|b',
    '^(?:a|b)*$',
    '(a*)*b',
    '(a+)+$',
    '[^a]',
    '[a-c]x',
    '\\d+',
    '^\\w+$',
    '\\bfoo\\b',
    '\\Boo',
    '(?i)STRASSE',
    '(?i)[k-m]',
    '(?m)^b$',
    '\\A\\z',
    '^[\\p{L}]+$',
    '\\PL',
    '[[:alpha:]]+1',
    'a{2}',
    '^a{2,}$',
    '^a{1,3}$',
    '(?:ab){2}',
    'a??b',
    'x*?y',
    '\\x{1F600}',
    '^[^\\s]+$',
    '\\.',
    '[\\-\\]]',
    '(?P<name>a)b',
    '^\\S.*$',
    'é',
    '^.{2}$',
    '\\Qa.b\\E',
    '[^\\n]$',
    '(?:)',
    '\\B',
  ];
  const TEXTS = [
    '',
    'a',
    'b',
    'ab',
    'ba',
    'aaa',
    'aab',
    'abab',
    'foo',
    'a foo b',
    'food',
    'straße',
    'STRASSE',
    '1',
    'x1',
    'K',
    '\u212a',
    'a\nb',
    '\n',
    'b\n',
    'a.b',
    'axb',
    '😀',
    'é',
    'éa',
    ' ',
    'a b',
    '-',
    ']',
    '_',
    'ж',
    'Aж1',
    'l',
    '.',
  ];

  test.each(PATTERNS)('matches like RE2JS: %s', (source) => {
    const theirs = RE2JS.compile(source);
    for (const text of TEXTS) expect([text, matches(source, text)]).toEqual([text, theirs.matcher(text).find()]);
  });

  test('matches like RE2JS for random patterns and texts', () => {
    const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\w', '\\b', '\\B', '^', '$', '(?:a|b)', '(a)', 'é');
    const repeat = fc.constantFrom('', '', '*', '+', '?', '{2}', '{0,2}', '*?');
    const source = fc
      .array(fc.tuple(atom, repeat), { minLength: 1, maxLength: 6 })
      .map((parts) => parts.map(([one, times]) => (/^(?:\^|\$|\\[bB])$/.test(one) ? one : one + times)).join(''));
    const text = fc.array(fc.constantFrom('a', 'b', ' ', '\n', 'é', '😀'), { maxLength: 8 }).map((all) => all.join(''));
    fc.assert(
      fc.property(source, fc.option(source), text, (one, other, given) => {
        const whole = other === null ? one : `(?:${one}|${other})*${one}`;
        expect(matches(whole, given)).toBe(RE2JS.compile(whole).matcher(given).find());
      }),
      { numRuns: runsOf(2_000) },
    );
  });

  test('matches the same when it is used again', () => {
    const pattern = compilePattern('^(?:ab)+$');
    for (const [text, fits] of [
      ['ab', true],
      ['aba', false],
      ['abab', true],
      ['', false],
      ['ab', true],
    ] as const) {
      expect(pattern.test(text, unbounded())).toBe(fits);
    }
  });
});

test.each(['(a)\\1', '(?=a)', '(?<!a)b', '[', 'a{1001}', '(?:a{500}){3}', 'a**', '\\'])(
  'refuses the pattern %s',
  (source) => {
    expect(() => compilePattern(source)).toThrow();
  },
);

/** A clock that moves on whenever it is looked at. */
function ticking(stepMs: number): { nowMs: () => number; looks: () => number } {
  let looks = 0;
  return { nowMs: () => looks++ * stepMs, looks: () => looks };
}

test.each([
  ['^(a+)+$', `${'a'.repeat(60_000)}b`],
  ['(x+x+)+y', 'x'.repeat(60_000)],
  ['[ab]*a[ab]{13}c', 'ab'.repeat(30_000)],
  ['(?:a[ab]{30}|b[ab]{40}a){8}$', 'ab'.repeat(30_000)],
])('aborts a match of %s within the text after the time limit', (source, text) => {
  const { nowMs, looks } = ticking(1);
  expect(() => compilePattern(source).test(text, new StepBudget(nowMs))).toThrow(Overrun);
  expect(looks()).toBeLessThan(LIMITS.schemaCheckMs + 5);
});

test('completes a match of few steps, however slow the machine is', () => {
  const { nowMs, looks } = ticking(1_000_000);
  const uuid = compilePattern('^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$');
  const budget = new StepBudget(nowMs);
  for (let at = 0; at < 500; at++) expect(uuid.test('0a1b2c3d-1111-2222-3333-444455556666', budget)).toBe(true);
  expect(looks()).toBe(0);
});

describe('the size of a pattern', () => {
  const instructions = (source: string): number => RE2JS.compile(source).programSize();

  test.each([
    'a',
    'abc',
    '(a)(b)',
    'a{100}',
    '(?:ab){100}',
    '(?:a{10}){10}',
    '(?:(?:a{3}b){4}c){5}',
    '(a?){300}',
    'x{2,7}y{3,}',
    '[a-z]{1,100}',
    '(?:a|b|c)*',
    '(?i)abc',
    '\\d{4}-\\d{2}',
    '(?:(?:a?){30}){30}',
  ])('is known before compilation: %s', (source) => {
    // An atom is up to three instructions: itself, and two for a repetition.
    expect(3 * patternSize(source) + 3).toBeGreaterThanOrEqual(instructions(source));
  });

  test.each([
    ['a long one', 'a'.repeat(LIMITS.schemaPatternSize + 1)],
    ['repetitions', '(?:a{30}){30}'],
    ['tables of Unicode', '\\pL?'.repeat(100)],
    ['ranges that are folded', '(?i)[B-\\x{1E000}]'],
    ['the same with flags', '(?si:[B-\u{1E000}])'],
  ])('exceeds the limit: %s', (_, source) => {
    expect(patternSize(source)).toBeGreaterThan(LIMITS.schemaPatternSize);
  });

  test.each([
    '^[A-Z]{2}[0-9]{1,4}$',
    '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
    '^(?:[0-9A-F]{2}:){5}[0-9A-F]{2}$',
    '^(?:(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)\\.){3}(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)$',
    '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(?:\\.\\d{1,9})?Z$',
    '(?i)^[a-zäöüß][a-z0-9äöüß ._-]{0,200}$',
    '^[\\p{L}][\\p{L}\\p{N} ]{0,60}$',
  ])('stays within the limit: %s', (source) => {
    expect(patternSize(source)).toBeLessThanOrEqual(LIMITS.schemaPatternSize / 2);
  });
});
