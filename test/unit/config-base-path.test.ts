/** Which values of `BASE_PATH` the service starts with. */
import { expect, test } from '@jest/globals';
import { parseConfig } from '../../src/config.js';

test.each([
  ['', ''],
  ['/', ''],
  ['/vigil', '/vigil'],
  ['/vigil/', '/vigil'],
  ['/tools/fleet.v2/', '/tools/fleet.v2'],
  ['/modelshop', '/modelshop'],
])('takes %j as %j', (given, taken) => {
  expect(parseConfig({ BASE_PATH: given }).http.basePath).toBe(taken);
});

test.each([
  'vigil',
  'https://site.example/vigil',
  '/vigil?x',
  '/vigil#x',
  '/a b',
  '/..',
  '/a/../b',
  '/./a',
  '//a',
  '/a//b',
  '/%61',
  '/"><script>',
  '/api',
  '/objects/x',
  '/socket.io',
])('refuses %j', (given) => {
  expect(() => parseConfig({ BASE_PATH: given })).toThrow('BASE_PATH: expected a path');
});
