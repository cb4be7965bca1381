/** The measurements of webhooks of `npm run bench`, on little data and for a moment. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { testUri } from '../support/fixture.js';

test('measures webhooks, and delivers every event', async () => {
  const given = ['--only', 'H', '--rounds', '1', '--seconds', '0.2', '--scale', '0.01'];
  const mongodb = ['--mongodb', testUri()];
  const { stdout } = await promisify(execFile)(process.execPath, ['dist/scripts/bench/main.js', ...given, ...mongodb]);
  for (const id of ['H1', 'H2', 'H3', 'H4', 'W6', 'W6b']) expect(stdout).toContain(`| ${id} |`);
  expect(stdout).toContain('| 1,000 events at once |');
});
