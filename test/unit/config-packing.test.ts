/** The setting of packed history. */
import { expect, test } from '@jest/globals';
import { parseConfig } from '../../src/config.js';

test.each([
  [undefined, null],
  ['never', null],
  ['1s', 1_000],
  ['1d', 86_400_000],
  ['2 weeks', 1_209_600_000],
])('packs history after %p: %p', (PACK_AFTER, packAfterMs) => {
  expect(parseConfig({ PACK_AFTER }).packAfterMs).toBe(packAfterMs);
});

test.each(['999ms', '0', 'always', '11 years', '4000d'])('refuses to pack history after %p', (PACK_AFTER) => {
  expect(() => parseConfig({ PACK_AFTER })).toThrow('PACK_AFTER: expected never, or a duration of at least 1s');
});
