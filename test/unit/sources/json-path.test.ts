/** The subset of JSONPath (RFC 9535) in the maps of sources. */
import { expect, test } from '@jest/globals';
import { parseJsonPath, valueAt } from '../../../src/core/json-path.js';

const BODY = { dev: { id: 'x', 'in.1': [1, 2, 3] }, t: [{ v: 21.5 }, { v: 22 }], 'a"b': 1, "c'd": 2, ü: 3, null: null };

test.each<[string, unknown]>([
  ['$', BODY],
  ['$.dev.id', 'x'],
  ["$.dev['in.1'][0]", 1],
  ['$["dev"]["in.1"][-1]', 3],
  ['$.t[0].v', 21.5],
  ['$.t[-1].v', 22],
  ['$[ "t" ][ 1 ].v', 22],
  ['$ .dev\t[\n"in.1"\r] [0]', 1],
  ["$['a\"b']", 1],
  ['$["a\\"b"]', 1],
  ["$['c\\'d']", 2],
  ['$["\\u00fc"]', 3],
  ["$['e\\\\\"']", undefined],
  ['$.ü', 3],
  ['$.null', null],
  ['$.t[2].v', undefined],
  ['$.dev.id.length', undefined],
  ['$.t.length', undefined],
  ['$.constructor', undefined],
  ['$.__proto__', undefined],
  ['$.dev[0]', undefined],
])('finds by %s the value %j', (text, value) => {
  const path = parseJsonPath(text);
  expect(path).not.toBeNull();
  expect(valueAt(BODY, path ?? [])).toEqual(value);
});

test.each([
  '',
  'dev.id',
  '.dev',
  '$dev',
  '$..id',
  '$.*',
  '$[*]',
  '$[0:2]',
  '$[?@.v]',
  '$.1a',
  '$.t[01]',
  '$.t[-0]',
  '$[',
  "$['a",
  '$.a b',
  '$. a',
])('refuses %j as a path', (text) => expect(parseJsonPath(text)).toBeNull());
