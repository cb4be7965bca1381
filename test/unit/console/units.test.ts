/** The units of distances that a reader is used to. */
import { expect, test } from '@jest/globals';
import { usesMiles } from '../../../src/console/map/units.js';

test.each<[string[], string, boolean]>([
  [['en-US', 'en'], 'en', true],
  [['en-GB'], 'en', true],
  [['en-IE', 'en-GB'], 'en', false],
  [['en', 'en-US'], 'en', true],
  [['en'], 'en', true],
  [['de-DE', 'de', 'en-US'], 'de', false],
  [['en-US', 'en'], 'de', false],
  [['de-AT', 'de'], 'en', false],
  [['fr-CA'], 'en', false],
  [['es-US'], 'en', true],
  [['en-us@posix', 'en-AU'], 'en', false],
  [[], 'de', false],
])('takes for a browser with %j and a console in %s miles: %s', (languages, language, expected) =>
  expect(usesMiles(languages, language)).toBe(expected),
);
