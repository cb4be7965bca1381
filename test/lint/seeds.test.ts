/** Random tests repeat: every one of them takes fast-check with the seed of test/support/runs.ts. */
import { expect, test } from '@jest/globals';
import { sourceFiles } from '../support/docs/files.js';

test('finds no test file that imports fast-check without a seed', () => {
  const found = sourceFiles('test')
    .filter(({ path, text }) => path.endsWith('.test.ts') && /^import .*'fast-check';$/m.test(text))
    .map(({ path }) => path);
  expect(found).toEqual([]);
});
