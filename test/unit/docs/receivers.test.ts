/** docs/reference/webhooks.md shows the receivers in examples/ as they are. */
import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { readBlocks, readSection } from '../../support/docs/markdown.js';

const blocks = readBlocks(readSection('docs/reference/webhooks.md', 'Receivers'));

test.each([
  ['js', 'receiver.mjs'],
  ['python', 'receiver.py'],
  ['php', 'receiver.php'],
])('shows in %s what is in examples/%s', (kind, file) => {
  const [shown] = blocks.filter((block) => block.kind === kind);
  expect(shown?.body).toBe(readFileSync(`examples/${file}`, 'utf8'));
});
