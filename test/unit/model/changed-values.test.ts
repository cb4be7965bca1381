/** What a security event says of a change: fields, former and new values, and no secret. */
import { describe, expect, test } from '@jest/globals';
import { changedValues } from '../../../src/core/changed-values.js';
import type { JsonObject } from '../../../src/core/json.js';
import { LIMITS } from '../../../src/core/limits.js';

describe('the changed values of an entity', () => {
  test.each<[string, JsonObject, JsonObject, object]>([
    [
      'nothing of equal versions',
      { a: [1], b: { c: null } },
      { a: [1], b: { c: null } },
      { fields: [], before: {}, after: {} },
    ],
    [
      'both values',
      { name: 'a', x: 1 },
      { name: 'b', x: 1 },
      { fields: ['name'], before: { name: 'a' }, after: { name: 'b' } },
    ],
    ['a new field', {}, { x: 0 }, { fields: ['x'], before: {}, after: { x: 0 } }],
    [
      'a removed field',
      { email: 'a@b.example' },
      {},
      { fields: ['email'], before: { email: 'a@b.example' }, after: {} },
    ],
    [
      'only changed members of nested objects',
      { config: { plate: 'A 1', driver: { name: 'Ann', age: 40 } } },
      { config: { plate: 'A 1', driver: { name: 'Bob', age: 40 } } },
      {
        fields: ['config'],
        before: { config: { driver: { name: 'Ann' } } },
        after: { config: { driver: { name: 'Bob' } } },
      },
    ],
    [
      'lists of plain values whole',
      { x: [1, 2] },
      { x: [1, 3] },
      { fields: ['x'], before: { x: [1, 2] }, after: { x: [1, 3] } },
    ],
    [
      'members of lists by their id',
      { data: [{ id: 'speed', unit: 'km/h' }, { id: 'fuel' }] },
      { data: [{ id: 'rpm' }, { id: 'speed', unit: 'mph' }, { id: 'fuel' }] },
      {
        fields: ['data'],
        before: { data: { speed: { unit: 'km/h' } } },
        after: { data: { rpm: { id: 'rpm' }, speed: { unit: 'mph' } } },
      },
    ],
    [
      'members of lists without ids by their place',
      { x: [{ a: 1 }] },
      { x: [{ a: 2 }] },
      { fields: ['x'], before: { x: { 0: { a: 1 } } }, after: { x: { 0: { a: 2 } } } },
    ],
    [
      'a value that becomes an object',
      { x: 1 },
      { x: { a: 2 } },
      { fields: ['x'], before: { x: 1 }, after: { x: { a: 2 } } },
    ],
    [
      'the permissions of a role',
      { credentials: [] },
      { credentials: ['* /*'] },
      { fields: ['credentials'], before: { credentials: [] }, after: { credentials: ['* /*'] } },
    ],
    [
      'addresses without what may be a key',
      { url: 'https://u:p@a.example:8/hook?k=1' },
      { url: 'https://b.example/x' },
      { fields: ['url'], before: { url: 'https://a.example:8/…' }, after: { url: 'https://b.example/…' } },
    ],
  ])('contain %s', (_, before, after, expected) => {
    expect(changedValues(before, after)).toEqual(expected);
  });

  test.each([
    'password',
    'token',
    'apiKey',
    'commandKey',
    'clientSecret',
    'auth',
    'pin',
    'simPin',
    'headers',
    'credentials',
    'privateKey',
  ])('name the field of a secret called %s, without its values', (name) => {
    const found = changedValues({ config: { [name]: 'canary 1' } }, { config: { [name]: { deep: 'canary 2' } } });
    expect(found).toEqual({ fields: ['config'], before: {}, after: {} });
    expect(changedValues({}, { config: [{ id: 'x', [name]: 'canary' }] }).after).toEqual({
      config: { x: { id: 'x' } },
    });
  });

  test('contain cut texts, and no more bytes than the limit', () => {
    const long = '😀'.repeat(LIMITS.auditValueCharacters);
    const { after } = changedValues({}, { text: long, list: [long] });
    expect(String(after.text)).toMatch(/^😀+…$/u);
    expect(String(after.list).length).toBeLessThanOrEqual(LIMITS.auditValueCharacters + 1);
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`field-${at}`, `ü${at}`]));
    const found = changedValues({}, many);
    expect(found.fields).toHaveLength(1_000);
    expect(Object.keys(found.after).length).toBeGreaterThan(50);
    expect(Buffer.byteLength(JSON.stringify(found.after))).toBeLessThanOrEqual(LIMITS.auditValuesBytes);
  });
});
