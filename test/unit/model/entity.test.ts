/** How a body becomes the fields of an entity, and how a patch merges. */
import { describe, expect, test } from '@jest/globals';
import { isId, merge, ownFields, parseNewEntity, parsePatch } from '../../../src/core/entity.js';
import type { JsonObject } from '../../../src/core/json.js';
import { builtInStore } from '../../../src/core/stores.js';
import { fc } from '../../support/runs.js';

const ID = '65a000000000000000000001';
const OBJECTS = builtInStore('objects');
const SERVICE = {
  _id: ID,
  access: [ID],
  owner: ID,
  branch: [ID],
  time: 1,
  _at: 2,
  success: true,
  models: { id: ID },
  state: { speed: 1 },
};

describe('an _id', () => {
  test.each<[text: unknown, is: boolean]>([
    [ID, true],
    [ID.toUpperCase(), true],
    ['ABCDEFabcdef012345678901', true],
    [ID.slice(1), false],
    [`${ID}0`, false],
    [`g${ID.slice(1)}`, false],
    [`${ID}\n`, false],
    ['', false],
    [123456789012, false],
    [null, false],
    [{ $gt: '' }, false],
  ])('is recognized: %p, %p', (text, is) => expect(isId(text)).toBe(is));
});

describe('a merge', () => {
  test.each<[what: string, before: JsonObject, patch: JsonObject, after: JsonObject]>([
    ['nothing changes nothing', { a: 1 }, {}, { a: 1 }],
    ['a scalar replaces', { a: 1 }, { a: 2 }, { a: 2 }],
    ['a new field is added at the end', { a: 1 }, { b: 2 }, { a: 1, b: 2 }],
    [
      'a nested object keeps its other leaves',
      { c: { a: { u: 'x', p: 'y' }, b: 1 } },
      { c: { a: { u: 'z' } } },
      { c: { a: { u: 'z', p: 'y' }, b: 1 } },
    ],
    ['an array replaces, whatever it holds', { a: [{ x: 1 }, 2] }, { a: [{ y: 1 }] }, { a: [{ y: 1 }] }],
    ['an object replaces a scalar', { a: 1 }, { a: { b: 1 } }, { a: { b: 1 } }],
    ['an object replaces an array', { a: [1] }, { a: { b: 1 } }, { a: { b: 1 } }],
    ['an object replaces null', { a: null }, { a: { b: 1 } }, { a: { b: 1 } }],
    ['a scalar replaces an object', { a: { b: 1 } }, { a: 's' }, { a: 's' }],
    ['null is stored', { a: { b: 1, c: 2 } }, { a: { b: null } }, { a: { b: null, c: 2 } }],
    ['null is stored for a whole object', { a: { b: 1 } }, { a: null }, { a: null }],
    ['an empty object keeps what is there', { a: { b: 1 } }, { a: {} }, { a: { b: 1 } }],
    ['an empty object replaces a scalar', { a: 1 }, { a: {} }, { a: {} }],
    ['an empty array empties', { a: [1] }, { a: [] }, { a: [] }],
  ])('follows the rule: %s', (_, before, patch, after) => {
    const untouched = structuredClone({ before, patch });
    expect(JSON.stringify(merge(before, patch))).toBe(JSON.stringify(after));
    expect({ before, patch }).toEqual(untouched);
  });

  test('is idempotent', () => {
    const json = fc.object({
      key: fc.constantFrom('a', 'b', 'c'),
      values: [fc.integer(), fc.constant(null), fc.string()],
    });
    fc.assert(
      fc.property(json, json, (before, patch) => {
        const once = merge(before as JsonObject, patch as JsonObject);
        expect(merge(once, patch as JsonObject)).toEqual(once);
      }),
    );
  });
});

describe('the fields of a body', () => {
  test('exclude those of the service, and names with a leading underscore', () => {
    expect(ownFields(OBJECTS, { ...SERVICE, group: ID, _builtin: true, _x: 1, id: 'a', name: 'b' })).toEqual({
      id: 'a',
      name: 'b',
    });
  });

  test('become those of a new entity, over the defaults, with the named group', () => {
    expect(parseNewEntity(OBJECTS, { ...SERVICE, group: ID.toUpperCase(), id: 'a', name: 'b', active: false })).toEqual(
      {
        fields: { status: '', active: false, id: 'a', name: 'b' },
        group: ID,
      },
    );
    expect(parseNewEntity(OBJECTS, { id: 'a', name: 'b' }).group).toBeNull();
    expect(parseNewEntity(OBJECTS, { id: 'a', name: 'b', group: null }).group).toBeNull();
  });

  test.each<[group: JsonObject[string]]>([['x'], [1], [{ ne: 1 }], [[]], [''], [false]])(
    'refuses the group %j',
    (group) => {
      expect(() => parseNewEntity(OBJECTS, { id: 'a', name: 'b', group })).toThrow(
        'group: expected the _id of a group',
      );
    },
  );

  test('become a patch without fields that are fixed at creation', () => {
    expect(parsePatch(OBJECTS, { ...SERVICE, group: ID, status: 's', config: { a: null } })).toEqual({
      status: 's',
      config: { a: null },
    });
    expect(parsePatch(builtInStore('stores'), { name: 'other', schema: {} })).toEqual({ schema: {} });
    expect(
      parsePatch(builtInStore('tokens'), {
        name: 'n',
        scopes: ['* /*'],
        expiresIn: '1h',
        token: 't',
        expiresAt: 1,
        issuedAt: 1,
        user: ID,
      }),
    ).toEqual({ name: 'n' });
  });

  test.each<[store: string, body: JsonObject, why: string]>([
    ['objects', { name: 'n' }, 'id: required'],
    ['objects', { id: 'i' }, 'name: required'],
    ['objects', { id: 1, name: 'n' }, 'id: '],
    ['objects', { id: 'a/b', name: 'n' }, 'id: may not contain'],
    ['objects', { id: '*', name: 'n' }, 'id: may not be'],
    ['objects', { id: 'A'.repeat(24), name: 'n' }, 'id: may not be'],
    ['objects', { id: ' \u2003', name: 'n' }, 'id: may not be'],
    ['objects', { id: 'a#', name: 'n' }, 'id: may not contain'],
    ['objects', { id: 'a\0', name: 'n' }, 'id: may not contain'],
    ['objects', { id: '', name: 'n' }, 'id: '],
    ['objects', { id: 'i', name: '' }, 'name: '],
    ['objects', { id: 'i', name: 'n', active: 'yes' }, 'active: '],
    ['objects', { id: 'i', name: 'n', status: 5 }, 'status: '],
    ['objects', { id: 'i', name: 'n', config: [] }, 'config: '],
    ['objects', { id: 'i', name: 'n', model: 'x' }, 'model: expected 24 hexadecimal digits'],
    ['models', {}, 'name: required'],
    ['users', { login: 'l' }, 'password: required'],
    ['users', { password: '12345678' }, 'login: required'],
    ['users', { login: 'l', password: '1234567' }, 'password: '],
    ['users', { login: 'l', password: '12345678', email: 'no address' }, 'email: '],
    ['groups', {}, 'name: required'],
    ['roles', { name: 'n' }, 'credentials: required'],
    ['roles', { credentials: [] }, 'name: required'],
    ['roles', { name: 'n', credentials: ['everything'] }, 'credentials.0: expected "METHOD /path/pattern"'],
    ['tokens', {}, 'name: required'],
    ['tokens', { name: 'n', expiresIn: 'soon' }, 'expiresIn: expected a duration'],
    ['tokens', { name: 'n', scopes: ['get /x'] }, 'scopes.0: expected "METHOD /path/pattern"'],
    ['handlers', { url: 'javascript:alert(1)' }, 'url: '],
    ['stores', {}, 'name: required'],
    ['stores', { name: 'Upper' }, 'name: expected lower-case letters'],
    ['stores', { name: 'a.b' }, 'name: expected lower-case letters'],
  ])('are refused for %s: %j', (store, body, why) => {
    expect(() => parseNewEntity(builtInStore(store), body)).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining(why) }),
    );
  });
});
