/** Which values of `CORS_ORIGINS` and `MAP_ORIGINS` the service starts with. */
import { expect, test } from '@jest/globals';
import { parseConfig } from '../../src/config.js';

const ACCEPTED = [
  'https://crm.example',
  'http://127.0.0.1:3000',
  'capacitor://localhost',
  'ionic://localhost',
  'file://',
  'app://com.example.field-service',
];
const REFUSED = [
  'null',
  '*',
  'crm.example',
  'https://crm.example/',
  'https://crm.example/path',
  'https://',
  'https://user@crm.example',
  'capacitor://localhost/',
  'capacitor:localhost',
  'javascript:alert(1)',
];

test.each(ACCEPTED)('accepts %s as an origin of pages', (origin) => {
  expect(parseConfig({ CORS_ORIGINS: `https://first.example, ${origin}` }).http.corsOrigins).toContain(origin);
});

test.each(REFUSED)('refuses %s as an origin of pages', (origin) => {
  expect(() => parseConfig({ CORS_ORIGINS: origin })).toThrow(/CORS_ORIGINS.*expected origins/);
});

test('refuses origins of apps for the map, whose files a web server sends', () => {
  expect(() => parseConfig({ MAP_ORIGINS: 'capacitor://localhost' })).toThrow(/MAP_ORIGINS.*expected origins/);
});
