/** The measurements of rules of `npm run bench`, on little data and for a moment. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { testUri } from '../support/fixture.js';

test('measures rules, and takes a fleet over', async () => {
  const given = ['--only', 'R', '--rounds', '1', '--seconds', '0.2', '--scale', '0.01'];
  const mongodb = ['--mongodb', testUri()];
  const { stdout } = await promisify(execFile)(process.execPath, ['dist/scripts/bench/main.js', ...given, ...mongodb]);
  for (const text of ['| W6 |', '| W6b |', 'with 10 that evaluate each packet', 'with one of 1000 geofences']) {
    expect(stdout).toContain(text);
  }
  expect(stdout).toMatch(/\| from the answer to the event \| 10 \| [\d.]+/);
  // The fleet: five states and a row of its own for each of 1,000 objects.
  expect(stdout).toMatch(/\| objects; rows of states \| 1,000; [56],\d{3} \|/);
  expect(stdout).toMatch(/until each partition has raised an alarm \| [\d.]+ s/);
});
