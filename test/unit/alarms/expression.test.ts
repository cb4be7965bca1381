/** Expressions of rules: results, errors that name the place, bounds, and the conformance data of CEL. */
import { tests } from '@bufbuild/cel-spec/testdata/conformance.js';
import { describe, expect, test } from '@jest/globals';
import type { JsonObject } from '../../../src/core/json.js';
import { parseExpression } from '../../../src/core/rule/expression.js';

const PACKET = { speed: 95.5, n: 3, ignition: true, list: [1, 2, 3], text: 'abc', none: null, engine: { temp: 71 } };

function evaluate(text: string, p: JsonObject = PACKET): boolean | null {
  return parseExpression(text, 'when.expr').evaluate({ p, last: { speed: 80 }, object: { config: { max: 90 } } });
}

describe('results', () => {
  test.each<[text: string, result: boolean | null]>([
    ['p.speed > 90 && p.ignition', true],
    ['p.speed > object.config.max', true],
    ['p.speed - last.speed > 20', false],
    ['p.speed + 1 > 96', true],
    ['1 + p.n == 4', true],
    ['p.n % 2 == 1', true],
    ['p.n / 2 > 1', true],
    ['abs(p.n - 10) == 7.0', true],
    ['p["speed"] > 90', true],
    ['p.engine.temp in [70, 71]', true],
    ['p.list.exists(x, x > 2)', true],
    ['p.list.all(x, x > 2)', false],
    ['p.text.matches("^a.c$")', true],
    ['matches(p.text, "b")', true],
    ['("x" + p.text).matches(r"^a")', false],
    ['p.text == "abc" // .matches("x")', true],
    ['has(p.missing)', false],
    ['p.none == null', true],
    // Not known: it changes nothing.
    ['p.missing > 3', null],
    ['p.none > 3', null],
    ['p.text > 3', null],
    ['p.speed', null],
    ['p.missing > 3 || p.ignition', true],
    ['p.missing > 3 && !p.ignition', false],
  ])('evaluates %s to %s', (text, result) => expect(evaluate(text)).toBe(result));
});

describe('errors', () => {
  test.each([
    ['p.speed >', 'line 1, column 10'],
    ['p.speed > 1 &&\n  (p.x', 'line 2, column 7'],
    ['foo > 1', 'line 1, column 1: Unknown variable'],
    ['1 + 2', 'expected a condition'],
    ['p.list.map(x, p.list.map(y, y + x)).size() > 1', ': a macro within another'],
    ['size(p.l.map(v, p.l + p.l).map(w, w + w)) < 0', ': a macro within another'],
    [`p.l.exists(v, size(${Array(20).fill('p.l').join('+')}) < 0)`, ': a macro with too much in it'],
    ['p.list.exists(x, x.matches(p.text))', 'a text in quotes'],
    ['p.text.matches("(")', 'the pattern is not valid'],
    [`p.text.matches("${'(a{1,100}){1,100}'}")`, 'the pattern is too large'],
    [
      ['a', 'b', 'c', 'd'].map((one) => `p.text.matches("(${one}{9}){30}")`).join(' || '),
      ': the patterns are too large in total',
    ],
    [Array(400).fill('p.a').join(' && '), 'line 1'],
    [`${'('.repeat(40)}p.a${')'.repeat(40)}`, 'line 1'],
    ['', 'expected an expression'],
    [`p.a == "${'x'.repeat(5_000)}"`, 'at most 4096 characters'],
  ])('refuses %.60s: %s', (text, message) => {
    expect(() => parseExpression(text, 'when.all[1].expr')).toThrow(/^when\.all\[1\]\.expr: /);
    expect(() => parseExpression(text, 'when.all[1].expr')).toThrow(message);
  });
});

describe('bounds', () => {
  test('finds no result in a text for which a pattern needs too many steps', () => {
    expect(evaluate('p.text.matches("(a|aa|aaa|aaaa){1,15}b")', { text: 'a'.repeat(60_000) })).toBeNull();
  });

  const LONG = 'ab,'.repeat(20_000);
  const lowered = (count: number): string =>
    Array.from({ length: count }, () => 'p.text.lowerAscii() == "x"').join(' || ');

  test.each<[string, string, JsonObject, boolean | null]>([
    ['one function over a long text', 'p.text.lowerAscii().contains("ab")', { text: LONG }, true],
    ['the size of a long text', 'size(p.text) > 3', { text: LONG }, true],
    ['many functions over a short text', lowered(25), { text: 'X' }, true],
    ['many functions over a long text', lowered(25), { text: LONG }, null],
    ['a chain of functions', `p.text${'.lowerAscii()'.repeat(20)} == "x"`, { text: LONG }, null],
    ['a text that is put together', `(${Array(20).fill('p.text').join(' + ')}).contains("x")`, { text: LONG }, null],
    ['texts that are joined', 'p.text.split(",").join("-").contains("ab-ab")', { text: 'ab,ab' }, true],
    ['a text in place of each comma of it', 'p.text.split(",").join(p.text) == "x"', { text: LONG }, null],
    [
      'the same in a long list',
      'p.list.join(p.text) == "x"',
      { list: Array(5_000).fill(''), text: 'a'.repeat(5_000) },
      null,
    ],
    [
      'functions in a macro',
      `p.list.exists(x, p.text.split(",").size() == x)`,
      { list: Array(90).fill(1), text: LONG.slice(0, 6_000) },
      null,
    ],
    ['a function of each item', 'p.list.exists(x, x.startsWith("b"))', { list: ['ab', 'bc'] }, true],
  ])('bounds what %s costs', (_about, text, packet, result) => {
    expect(evaluate(text, packet)).toBe(result);
  });

  test('runs macros only over packets of few values', () => {
    const list = Array.from({ length: 600 }, (_, index) => index);
    expect(evaluate('p.list.exists(x, x in p.list)', { list: list.slice(0, 150) })).toBe(true);
    expect(evaluate('p.list.exists(x, x in p.list)', { list })).toBeNull();
    expect(evaluate('p.list.exists(x, x > 1)', { list: [2], text: 'a'.repeat(60_000) })).toBeNull();
  });
});

describe('conformance', () => {
  interface Suite {
    readonly name: string;
    readonly suites?: readonly Suite[];
    readonly tests?: readonly { readonly original: JsonObject & { readonly expr: string } }[];
  }
  const casesIn = ({ suites = [], tests: own = [] }: Suite): JsonObject[] => [
    ...own.map(({ original }) => original),
    ...suites.flatMap(casesIn),
  ];
  /** What the library does otherwise: unsigned integers and bytes, which JSON does not have, integers above 2^53, nanoseconds. */
  const OTHERWISE =
    /^(eq_bytes|not_ne_bytes|eq_(list|map)_mixed_type_numbers|.*_big_.*|u?int_in_\w+|double_in_uints|add_time_to_duration_nanos_positive)$/;

  test('agrees with the results of the specification wherever it accepts an expression', () => {
    let agreeing = 0;
    const others: unknown[] = [];
    for (const { name, expr, value, bindings, container } of casesIn(tests as Suite)) {
      const wanted = (value as { boolValue?: boolean } | undefined)?.boolValue;
      if (wanted === undefined || bindings !== undefined || container !== undefined) continue;
      const result = resultOf(String(expr));
      if (result === wanted) agreeing++;
      else if (result !== null && !OTHERWISE.test(String(name))) others.push([name, expr, result]);
    }
    expect(others).toEqual([]);
    expect(agreeing).toBeGreaterThan(430);
  });

  function resultOf(text: string): boolean | null {
    try {
      return parseExpression(text, 'expr').evaluate({ p: {}, last: {}, object: {} });
    } catch {
      return null;
    }
  }
});
