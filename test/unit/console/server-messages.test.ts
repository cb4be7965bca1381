/** What the server says of a field, at that field and in the words of the console. */
import { expect, test } from '@jest/globals';
import { ENGLISH_FAULTS, type FaultKey } from '../../../src/console/text/english-faults.js';
import { GERMAN_FAULTS } from '../../../src/console/text/german-faults.js';
import { splitHelper, toText } from '../../../src/console/text/server-messages.js';
import { builtInStore } from '../../../src/core/stores.js';

test.each([
  ['id: already taken', ['id', 'already taken']],
  ['config.auth.password: required', ['config.auth.password', 'required']],
  ['data.children.0.id: one: two', ['data.children.0.id', 'one: two']],
  ['from, to: required', null],
  ['at most 9 tokens: revoke one first', null],
  ['', null],
])('finds the field in “%s”', (helper, found) => {
  expect(splitHelper(helper)).toEqual(found);
});

const refusalOf = (store: string, fields: Record<string, string | number | null | string[]>): string => {
  try {
    builtInStore(store).checkPatch(fields);
    return '';
  } catch (error) {
    return String((error as Error).message).split(': ')[1] ?? '';
  }
};

test.each([
  [refusalOf('objects', { id: 'a/b' }), 'characters', ''],
  [refusalOf('objects', { id: '*' }), 'ownId', ''],
  [refusalOf('objects', { id: '' }), 'required', ''],
  [refusalOf('objects', { name: 5 }), 'text', ''],
  [refusalOf('objects', { name: 'x'.repeat(5_000) }), 'atMost', '256'],
  [refusalOf('users', { password: 'short' }), 'atLeast', '8'],
  [refusalOf('users', { email: 'no address' }), 'email', ''],
  [refusalOf('roles', { credentials: ['read'] }), 'request', ''],
  [refusalOf('geofences', { radius: 'x' }), 'number', ''],
  [refusalOf('geofences', { radius: 0 }), 'more', '0'],
  ['already taken', 'taken', ''],
  ['wrong password', 'wrongPassword', ''],
  ['an argument needs an id of the form ^x$', 'parameterId', ''],
] as const)('has words for “%s”', (message, key: FaultKey, count) => {
  expect(toText(message, 'en')).toBe(ENGLISH_FAULTS[key].replace('{count}', count));
  expect(toText(message, 'de')).toBe(GERMAN_FAULTS[key].replace('{count}', count));
});

test('leaves a message as it is that it does not know', () => {
  expect(toText('expected the moon', 'de')).toBe('expected the moon');
});
