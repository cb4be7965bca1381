/** Which JSON a client may hand in. */
import { describe, expect, test } from '@jest/globals';
import { checkJson, isObject, type Json, parseObject } from '../../../src/core/json.js';
import { LIMITS } from '../../../src/core/limits.js';
import { fc } from '../../support/runs.js';

function nested(depth: number, leaf: Json = 1): Json {
  return depth === 0 ? leaf : { a: nested(depth - 1, leaf) };
}
const listed = (depth: number): Json => (depth === 0 ? 1 : [listed(depth - 1)]);
const fields = (count: number): Json => Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, 1]));

describe('a valid value', () => {
  test.each<[what: string, value: Json]>([
    ['null', null],
    ['every scalar', [null, true, false, 0, -0.5, 1e308, '', 'text']],
    ['emoji and letters of every script', { имя: '車 🚗' }],
    ['a $ or a digit inside a name', { a$b: 1, '0': 2, 'a b': 3, 'a-b': 4 }],
    ['$ and dots in text', { a: '$set', b: 'a.b.c', c: '__proto__', d: '\0' }],
    ['the deepest nesting', nested(LIMITS.jsonDepth)],
    ['the most fields', fields(LIMITS.jsonKeys)],
    ['the longest text', 'x'.repeat(LIMITS.jsonStringCharacters)],
    ['the most items', Array.from({ length: LIMITS.jsonArrayItems }, () => 0)],
    ['the longest name', { ['k'.repeat(LIMITS.keyCharacters)]: 1 }],
  ])('is returned unchanged: %s', (_, value) => expect(checkJson(value, '')).toBe(value));

  test('is any JSON with plain names', () => {
    const names = fc
      .stringMatching(/^[a-z][a-z0-9_]{0,8}$/)
      .filter((name) => name !== 'constructor' && name !== 'prototype');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.string({ unit: 'grapheme' }),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.constant(null),
        tie('list'),
        tie('object'),
      ),
      list: fc.array(tie('value'), { maxLength: 4 }),
      object: fc.dictionary(names, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    }));
    fc.assert(fc.property(value, (json) => expect(checkJson(json, '')).toBe(json)));
  });
});

const NAME = 'a field name may not be';
const HOSTILE: [what: string, text: string, why: string][] = [
  ['a name that begins with $', '{"$set":1}', `"$set": ${NAME}`],
  ['a name with a dot', '{"a.b":1}', `"a.b": ${NAME}`],
  ['a name with a NUL', '{"a\\u0000b":1}', NAME],
  ['an empty name', '{"":1}', NAME],
  ['__proto__', '{"__proto__":{"admin":true}}', `"__proto__": ${NAME}`],
  ['constructor', '{"constructor":1}', `"constructor": ${NAME}`],
  ['prototype', '{"prototype":1}', `"prototype": ${NAME}`],
  ['a name that is too long', `{"${'k'.repeat(LIMITS.keyCharacters + 1)}":1}`, 'at most 128 characters'],
  ['a lone surrogate in a name', '{"\\ud800":1}', 'well-formed'],
  ['a lone surrogate in text', '{"a":"x\\udfff"}', '"a": the text is not well-formed'],
  ['a number beyond JSON', '{"a":1e400}', '"a": the number is too large'],
  ['a negative one', '{"a":-1e400}', '"a": the number is too large'],
  ['text that is too long', `{"a":"${'x'.repeat(LIMITS.jsonStringCharacters + 1)}"}`, 'longer than 65536 characters'],
  ['too many fields', JSON.stringify({ a: fields(LIMITS.jsonKeys + 1) }), '"a": more than 500 fields'],
  ['too many items', JSON.stringify({ a: Array(LIMITS.jsonArrayItems + 1).fill(0) }), '"a": more than 10000 items'],
  ['too deep objects', JSON.stringify(nested(LIMITS.jsonDepth + 1)), 'nested more than 20 deep'],
  ['too deep lists', JSON.stringify({ a: listed(LIMITS.jsonDepth) }), 'nested more than 20 deep'],
];

describe('an invalid value', () => {
  test.each(HOSTILE)('is refused with its path: %s', (_, text, why) => {
    expect(() => checkJson(JSON.parse(text), '')).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining(why) }),
    );
  });

  test.each(HOSTILE.slice(0, 11))('is refused within an object in a list: %s', (_, text, why) => {
    const wrapped = JSON.parse(`{"list":[0,{"inner":${text}}]}`);
    const place = '"list[1].inner.';
    expect(() => checkJson(wrapped, '')).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining(why.replace(/^"[^"]*": /, '')) }),
    );
    expect(() => checkJson(wrapped, '')).toThrow(place);
  });

  test("is named with the caller's prefix", () => {
    expect(() => checkJson({ a: [Number.POSITIVE_INFINITY] }, '[7]')).toThrow('"[7].a[0]": the number is too large');
  });
});

describe('a body', () => {
  test.each<[value: unknown, is: boolean]>([
    [{}, true],
    [{ a: 1 }, true],
    [[], false],
    [null, false],
    [undefined, false],
    ['{}', false],
    [1, false],
  ])('is an object or not: %p, %p', (value, is) => {
    expect(isObject(value)).toBe(is);
    if (is) expect(parseObject(value)).toBe(value);
    else expect(() => parseObject(value)).toThrow('the body must be a JSON object');
  });

  test('pollutes no prototype with __proto__', () => {
    expect(() => parseObject(JSON.parse('{"__proto__":{"polluted":1}}'))).toThrow();
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
