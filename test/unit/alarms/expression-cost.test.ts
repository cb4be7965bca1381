/** What expressions cost: whatever an operator or a function does beyond a constant is charged, in rules and in formulas. */
import { describe, expect, test } from '@jest/globals';
import { Environment } from '@marcbachmann/cel-js';
import type { JsonObject } from '../../../src/core/json.js';
import { LIMITS } from '../../../src/core/limits.js';
import { parseExpression, parseFormula } from '../../../src/core/rule/expression.js';
import { Steps, TOO_MANY_STEPS } from '../../../src/core/rule/metering.js';

const never = (reason: string): never => {
  throw new Error(reason);
};
const calculate = (text: string, p: JsonObject, steps = new Steps()): unknown =>
  parseFormula(text, never).calculate(p, steps);

const times = (count: number, text: string, separator = ' + '): string => Array(count).fill(text).join(separator);
const zeros = (count: number): number[] => Array(count).fill(0);
const text = (characters: number): string => 'a'.repeat(characters);
const object = (count: number): JsonObject => Object.fromEntries(zeros(count).map((zero, n) => [`k${n}`, zero]));
/** 2 to the power of 20 values. */
const deep = `[${times(2, `[${times(2, `[${times(2, `[${times(2, 'p.l', ', ')}]`, ', ')}]`, ', ')}]`, ', ')}]`;
/** More than the largest body. */
const HUGE = text(17 * 1_024 ** 2);
const LONG = text(64 * 1_024);
const LIST = zeros(100_000);

/** By function or operator: an expression, and a packet for which it would take long. */
const ATTACKS: readonly (readonly [name: string, expression: string, packet: JsonObject])[] = [
  ['+ of lists', `size(${times(60, 'p.l')})`, { l: LIST }],
  ['+ of lists', 'size(p.l + p.l)', { l: zeros(8_000_000) }],
  ['+ of texts', `size(${times(20, 'p.t')})`, { t: LONG }],
  ['+ of texts', 'p.t + p.t == p.t', { t: HUGE }],
  ['+ of bytes', `size(${times(20, 'bytes(p.t)')})`, { t: LONG }],
  ['== of texts', times(20, 'p.t == p.u', ' && '), { t: LONG, u: `${LONG.slice(1)}a` }],
  ['!= of texts', times(20, '!(p.t != p.u)', ' && '), { t: LONG, u: `${LONG.slice(1)}a` }],
  ['== of lists', times(20, 'p.l == p.m', ' && '), { l: LIST, m: [...LIST] }],
  ['!= of lists', times(20, '!(p.l != p.m)', ' && '), { l: LIST, m: [...LIST] }],
  ['== of lists of one list', `${deep} == ${deep}`, { l: zeros(20_000) }],
  ['== of objects', times(20, 'p.l == p.m', ' && '), { l: object(5_000), m: object(5_000) }],
  ['< of texts', times(20, '!(p.t < p.u)', ' && '), { t: LONG, u: LONG }],
  ['<= of texts', times(20, 'p.t <= p.u', ' && '), { t: LONG, u: LONG }],
  ['> of texts', times(20, '!(p.t > p.u)', ' && '), { t: LONG, u: LONG }],
  ['>= of texts', times(20, 'p.t >= p.u', ' && '), { t: LONG, u: LONG }],
  ['in a list', times(20, 'p.n in p.l', ' || '), { n: 1, l: LIST }],
  ['in a list of texts', times(2, 'p.t in p.l', ' || '), { t: text(5_000), l: zeros(50).map(() => `${text(4_999)}b`) }],
  ['in a list of lists', 'p.n in p.l', { n: LIST, l: zeros(10).map(() => [...LIST.slice(1), 1]) }],
  ['[]', times(20, 'has(p.x) || p[p.t] == 1', ' || '), { t: HUGE }],
  ['size of a text', times(20, 'size(p.t)'), { t: LONG }],
  ['size of a text', 'p.t.size()', { t: HUGE }],
  ['size of an object', times(60, 'size(p.o)'), { o: object(5_000) }],
  ['contains', 'p.t.contains(p.u)', { t: text(30_000), u: `b${text(15_000)}` }],
  ['indexOf', 'p.t.indexOf(p.u)', { t: text(30_000), u: `b${text(15_000)}` }],
  ['indexOf', 'p.t.indexOf(p.u, 1)', { t: text(30_000), u: `b${text(15_000)}` }],
  ['lastIndexOf', 'p.t.lastIndexOf(p.u)', { t: text(30_000), u: `${text(15_000)}b` }],
  ['lastIndexOf', 'p.t.lastIndexOf(p.u, 29000)', { t: text(30_000), u: `${text(15_000)}b` }],
  ['split', 'size(p.t.split(p.u))', { t: text(30_000), u: `b${text(15_000)}` }],
  ['split', times(4, 'size(p.t.split(""))'), { t: LONG }],
  ['split', times(4, 'size(p.t.split("", 5))'), { t: LONG }],
  ['join', 'size(p.l.join(p.t))', { l: Array(5_000).fill(''), t: text(5_000) }],
  ['join', times(4, 'size(p.l.join())'), { l: Array(5_000).fill(text(20)) }],
  ['startsWith', times(20, 'p.t.startsWith(p.t)', ' && '), { t: LONG }],
  ['endsWith', times(20, 'p.t.endsWith(p.t)', ' && '), { t: LONG }],
  ['lowerAscii', `p.t${'.lowerAscii()'.repeat(20)}`, { t: LONG }],
  ['upperAscii', `p.t${'.upperAscii()'.repeat(20)}`, { t: LONG }],
  ['trim', times(20, 'p.t.trim()'), { t: `${' '.repeat(60_000)}a` }],
  ['substring', times(20, 'p.t.substring(1)'), { t: LONG }],
  ['substring', times(20, 'p.t.substring(1, 60000)'), { t: LONG }],
  ['matches', 'p.t.matches("(a|aa|aaa|aaaa){1,15}b")', { t: LONG }],
  ['matches', 'matches(p.t, "(a|aa|aaa|aaaa){1,15}b")', { t: LONG }],
  ['bool', times(20, 'bool(p.t)', ' || '), { t: LONG }],
  ['bytes', times(20, 'size(bytes(p.t))'), { t: LONG }],
  ['double', times(20, 'double(p.t)'), { t: '1'.repeat(60_000) }],
  ['int', times(20, 'int(p.t) == 1', ' && '), { t: `${' '.repeat(60_000)}1` }],
  ['uint', times(20, 'uint(p.t) == uint(1)', ' && '), { t: HUGE }],
  ['string', times(20, 'string(bytes(p.t))'), { t: LONG }],
  ['string', 'bytes(p.t).string()', { t: HUGE }],
  ['json', times(20, 'size(bytes(p.t).json())'), { t: JSON.stringify(object(3_000)) }],
  ['hex', times(4, 'bytes(p.t).hex()'), { t: LONG }],
  ['base64', times(4, 'bytes(p.t).base64()'), { t: LONG }],
  ['timestamp', 'timestamp(p.t) > timestamp(0)', { t: HUGE }],
  ['duration', 'duration(p.t) > duration("1s")', { t: '1'.repeat(60_000) }],
  ['duration', 'duration(p.t) > duration("1s")', { t: `${'9'.repeat(60_000)}h` }],
  ['map', 'size(p.l.map(x, p.t + p.t))', { l: zeros(100), t: text(2_000) }],
  ['map', 'size(p.l.map(x, x == 0, p.t + p.t))', { l: zeros(100), t: text(2_000) }],
  ['map', 'size(p.l.map(x, p.l + p.l + p.l + p.l + p.l))', { l: zeros(190) }],
  ['filter', 'size(p.t.split("").filter(x, x != "" && x != "b" && x != "c"))', { t: text(10_000) }],
  ['all', 'p.t.split("").all(x, x != "" && x != "b" && x != "c")', { t: text(10_000) }],
  ['exists', 'p.t.split("").exists(x, x == "" || x == "b" || x == "c")', { t: text(10_000) }],
  ['exists_one', 'p.t.split("").exists_one(x, x == "" || x == "b" || x == "c")', { t: text(10_000) }],
  ['errors', times(3, 'p.l.exists(x, x.y)', ' || '), { l: zeros(190) }],
  ['errors', times(4, 'p.l.all(x, (x.a || x.b || x.c) || true)', ' && '), { l: zeros(190) }],
  ['bind', 'cel.bind(x, p.t + p.t, size(x + x + x + x + x + x + x))', { t: text(12_000) }],
  ...['Date', 'DayOfMonth', 'DayOfWeek', 'DayOfYear', 'FullYear', 'Hours', 'Minutes', 'Month', 'Seconds'].map(
    (part) => [`get${part}`, `p.l.all(x, timestamp(0).get${part}("Europe/Berlin") >= 0)`, { l: zeros(150) }] as const,
  ),
];

/** Functions whose cost does not depend on what they are given, or which no expression can reach. */
const CONSTANT: ReadonlySet<string> = new Set(['dyn', 'type', 'abs', 'at', 'has', 'getMilliseconds']);
const OPTIONAL = /Optional|optional/;

describe('attacks', () => {
  test.each(ATTACKS.map((one, index) => [one[0], index, ...one.slice(1)] as const))(
    'end for %s (%i)',
    (_name, _index, expression, packet) => {
      const attack = expression as string;
      expect(() => calculate(attack, packet as JsonObject)).toThrow(TOO_MANY_STEPS);
      const input = { p: packet as JsonObject, last: {}, object: {} };
      expect(parseExpression(`dyn(${attack}) != null`, 'expr').evaluate(input)).toBeNull();
      expect(parseExpression(`dyn(${attack}) != null || true`, 'expr').evaluate(input)).toBeNull();
    },
  );

  test('are tried for every function of the library', () => {
    const { functions } = new Environment().getDefinitions();
    const tried = new Set(ATTACKS.map(([name]) => name.split(' ')[0]));
    const names = functions.filter(({ signature }) => !OPTIONAL.test(signature)).map(({ name }) => name);
    expect([...new Set(names)].filter((name) => !tried.has(name) && !CONSTANT.has(name))).toEqual([]);
  });
});

describe('usual expressions', () => {
  test.each<[string, JsonObject]>([
    ['p.speed * 3.6', { speed: 10 }],
    [
      'p.speed > 90 && p.ignition && (p.engine.temp > 100 || p.engine.rpm > 5000)',
      { speed: 95, ignition: true, engine: { temp: 1, rpm: 2 } },
    ],
    ['double(p.payload.split(",")[3])', { payload: '1,2,3,4,5' }],
  ])('take few steps: %s', (expression, packet) => {
    const steps = new Steps(1_000);
    calculate(expression, packet, steps);
    expect(steps.areSpent).toBe(false);
  });

  test('may call what only optional values have', () => {
    expect(() => calculate('p.l.map(x, x.or(x))', { l: [1] })).toThrow('optional');
  });

  test('have all steps for each evaluation of a rule', () => {
    const expression = parseExpression('size(p.t) > 3', 'expr');
    const input = { p: { t: text(LIMITS.expressionSteps / 2) }, last: {}, object: {} };
    for (let round = 0; round < 5; round++) expect(expression.evaluate(input)).toBe(true);
  });
});

test('finds no result in values of more forms than the library may keep', () => {
  const nested = (depth: number): JsonObject['p'] =>
    depth === 0 ? 1 : depth % 2 === 0 ? [nested(depth - 1)] : { a: nested(depth - 1) };
  const evaluate = (given: string, v: JsonObject['p']) =>
    parseExpression(given, 'expr').evaluate({ p: { v } as JsonObject, last: {}, object: {} });
  expect(evaluate('size(p.v) == 1', nested(LIMITS.expressionNesting))).toBe(true);
  expect(evaluate('size(p.v) == 1', nested(LIMITS.expressionNesting + 1))).toBeNull();
  expect(evaluate('p.v == [p.v]', nested(LIMITS.expressionNesting + 1))).toBeNull();
  expect(evaluate('p.v != null', nested(20))).toBe(true);
  expect(evaluate('"v" in p && !("w" in p)', nested(19))).toBe(true);
  expect(evaluate('p.v[0].a == p.v[0].a', nested(20))).toBeNull();
  expect(evaluate('has(p.v)', nested(20))).toBe(true);
});
