/** The measurements of the console of `npm run bench`, with few objects and for a moment. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { PLAIN_PAGES } from '../../scripts/bench/chromium.js';
import { testUri } from '../support/fixture.js';

test('measures the console in a browser, and prints the bar of each value', async () => {
  const given = ['--only', 'console', '--seconds', '1', '--scale', '0.002'];
  const mongodb = ['--mongodb', testUri()];
  const env = { ...process.env, CHROMIUM_ARGUMENTS: PLAIN_PAGES };
  const program = ['dist/scripts/bench/main.js', ...given, ...mongodb];
  const { stdout } = await promisify(execFile)(process.execPath, program, { env });
  const bars = stdout.split('\n').flatMap(
    (line) =>
      line
        .match(/\| [\d.,]+ \S+ \| ([≤≥]) ([\d,]+) \|/)
        ?.slice(1)
        .join(' ') ?? [],
  );
  const fleet = ['≤ 25', '≤ 100', '≤ 25', '≤ 100', '≤ 60', '≤ 60'];
  const many = ['≤ 1,500', '≤ 200', '≥ 55'];
  const starts = ['≤ 2,500', '≤ 200', '≤ 2,500', '≤ 200'];
  expect(bars).toEqual(['≤ 3,000', '≤ 300', '≤ 60', '≤ 60', '≤ 520', ...starts, '≥ 55', ...fleet, ...many]);
});
