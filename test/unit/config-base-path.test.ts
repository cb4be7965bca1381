/** Which values of `BASE_PATH` the service starts with. */
import { readFileSync } from 'node:fs';
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

/** The first segments of the addresses of pages. */
const PAGES = [...readFileSync('src/console/shell/routes.ts', 'utf8').matchAll(/'\/(\w+)(?:\/[^']*)?'[,;]/g)].map(
  ([, name]) => `/${name}`,
);

test('reads the addresses of pages from the console', () => {
  expect(PAGES).toEqual(expect.arrayContaining(['/objects', '/alarms', '/rules', '/account']));
});

test.each([
  ...PAGES,
  '/s',
  '/rules/x',
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
