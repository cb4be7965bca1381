/** Formulas of models: what they calculate of a packet, in which order, and what is refused. */
import { describe, expect, test } from '@jest/globals';
import { parseFormulas } from '../../../src/core/formula.js';
import type { JsonObject } from '../../../src/core/json.js';
import { LIMITS } from '../../../src/core/limits.js';

type Argument = readonly [id: string, formula: unknown, dataType?: string];

const modelOf = (...given: readonly Argument[]): JsonObject => ({
  type: 'subsystem',
  children: given.map(([id, formula, dataType = null]) => ({ type: 'argument', id, formula, dataType }) as JsonObject),
});

function calculate(model: JsonObject, packet: JsonObject): { parameters: JsonObject; failed: string[] } {
  const parameters = { ...packet };
  const failed: string[] = [];
  parseFormulas(model, (path, reason) => failed.push(`${path.join('.')}: ${reason}`))?.calculate(
    parameters,
    (parameter) => failed.push(parameter),
  );
  return { parameters, failed };
}

const KMH: Argument = ['kmh', 'p.speed * 3.6', 'number'];

test.each<[string, readonly Argument[], JsonObject, JsonObject]>([
  ['a number', [KMH], { speed: 10 }, { speed: 10, kmh: 36 }],
  ['a whole number', [['n', 'size(p.list)']], { list: [1, 2] }, { list: [1, 2], n: 2 }],
  ['with numbers of every form', [['x', '(p.a + 1) / 2 - p.b']], { a: 2, b: 0.5 }, { a: 2, b: 0.5, x: 1 }],
  ['a condition', [['hot', 'p.t > 8', 'boolean']], { t: 9 }, { t: 9, hot: true }],
  ['a text', [['state', "p.t > 8 ? 'hot' : 'cold'", 'string']], { t: 1 }, { t: 1, state: 'cold' }],
  ['a list', [['all', '[p.a, p.b]', 'number[]']], { a: 1, b: 2 }, { a: 1, b: 2, all: [1, 2] }],
  [
    'of members',
    [['temp', 'p.engine.temp - 273.15']],
    { engine: { temp: 300.15 } },
    { engine: { temp: 300.15 }, temp: 27 },
  ],
  ['of what is there', [['x', 'has(p.b) ? p.b : p.a']], { a: 1 }, { a: 1, x: 1 }],
  ['in place of what was sent', [KMH], { speed: 10, kmh: 1 }, { speed: 10, kmh: 36 }],
  ['nothing of what is not there', [KMH], { t: 1 }, { t: 1 }],
  ['nothing in place of what was sent, if nothing is there', [KMH], { kmh: 5 }, { kmh: 5 }],
  ['null of null', [KMH], { speed: null }, { speed: null, kmh: null }],
  [
    'after what it reads',
    [
      ['c', 'p.b + 1'],
      ['b', 'p.a + 1'],
    ],
    { a: 1 },
    { a: 1, b: 2, c: 3 },
  ],
])('calculates %s', (_about, given, packet, expected) => {
  expect(calculate(modelOf(...given), packet)).toEqual({ parameters: expected, failed: [] });
});

test.each<[string, Argument, JsonObject]>([
  ['of text', KMH, { speed: 'fast' }],
  ['of another missing one', ['x', 'p.a + p.b'], { a: 1 }],
  ['that is infinite', ['x', 'p.a / p.b'], { a: 1, b: 0 }],
  ['of another type', ['x', "p.a > 1 ? 'much' : 'little'", 'number'], { a: 1 }],
  ['that no packet has', ['x', "{'a': p.a}"], { a: 1 }],
])('makes null of a result %s, and says so', (_about, given, packet) => {
  expect(calculate(modelOf(given), packet)).toEqual({
    parameters: { ...packet, [given[0]]: null },
    failed: [given[0]],
  });
});

test('lets all formulas of a packet take only so many steps together', () => {
  const size = (id: string): Argument => [id, 'size(p.text)', 'number'];
  const text = 'a'.repeat(LIMITS.expressionSteps * 0.4);
  const last: Argument = ['kmh', 'p.speed * 3.6'];
  expect(calculate(modelOf(size('a'), size('b'), size('c'), last), { text, speed: 10 })).toEqual({
    parameters: { text, speed: 10, a: text.length, b: text.length, c: null, kmh: null },
    failed: ['c', 'kmh'],
  });
  expect(calculate(modelOf(size('a'), size('b'), last), { text, speed: 10 }).failed).toEqual([]);
});

test('bounds the characters of all results of a packet', () => {
  const texts = (id: string): Argument => [id, `[${Array(100).fill('p.text').join(', ')}]`, 'string[]'];
  const long: Argument = ['long', 'p.text + p.text', 'string'];
  const text = 'a'.repeat(LIMITS.formulaResultCharacters / 2 - 8);
  const given = Array.from({ length: 9 }, (_, index) => texts(`x${index}`));
  const { parameters, failed } = calculate(modelOf(...given, long, KMH), { text, speed: 10 });
  expect(failed).toEqual(given.map(([id]) => id));
  expect(parameters).toEqual({
    text,
    speed: 10,
    ...Object.fromEntries(failed.map((id) => [id, null])),
    long: text + text,
    kmh: 36,
  });
  expect(calculate(modelOf(long, ['more', 'p.text'], KMH), { text, speed: 10 }).failed).toEqual(['more']);
});

describe('refusals', () => {
  const many = Array.from({ length: LIMITS.modelFormulas + 1 }, (_, index): Argument => [`x${index}`, 'p.a']);
  const long = Array.from({ length: 30 }, (_, index): Argument => [`x${index}`, `p.a${' + p.a'.repeat(60)}`]);
  test.each<[string, readonly Argument[], string]>([
    ['what cannot be parsed', [['x', 'p.a +']], 'data.children.0.formula: line 1, column 6'],
    ['what is no text', [['x', 5]], 'data.children.0.formula: expected an expression'],
    [
      'the values before the packet',
      [KMH, ['x', 'p.a - last.a']],
      'data.children.1.formula: line 1, column 7: a formula reads only p',
    ],
    [
      'a circle',
      [
        ['a', 'p.b'],
        ['b', 'p.c'],
        ['c', 'p.a'],
      ],
      'data.children.0.formula: calculated of itself: a, b, c, a',
    ],
    ['what is calculated of itself', [['a', 'p.a * 2.0']], 'data.children.0.formula: calculated of itself: a, a'],
    ['two for one parameter', [KMH, KMH], 'data.children.1.formula: kmh has another formula already'],
    ['fields of every packet', [['time', 'p.a']], 'data.children.0.formula: time cannot be calculated'],
    ['members', [['a.b', 'p.a']], 'data.children.0.formula: a.b cannot be calculated'],
    ['too many', many, 'data.children.50.formula: a model has at most 50 formulas'],
    ['too much work', long, 'formula: the formulas of the model are too much work for each packet'],
  ])('name the place of %s', (_about, given, expected) => {
    const found: string[] = [];
    parseFormulas(modelOf(...given), (path, reason) => found.push(`${['data', ...path].join('.')}: ${reason}`));
    expect(found[0]).toContain(expected);
  });
});
