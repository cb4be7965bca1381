/** The measurements of `npm run bench`, each on little data and for a moment. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import type { Measurement } from '../../scripts/bench/table.js';
import { WORKLOADS } from '../../scripts/bench/workloads.js';
import { testUri } from '../support/fixture.js';

test('measures every workload', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-bench-test-'));
  try {
    const file = join(folder, 'results.json');
    const given = ['--rounds', '1', '--seconds', '1', '--scale', '0.01', '--servers', 'ours', '--json', file];
    const mongodb = ['--mongodb', testUri()];
    const { stdout } = await promisify(execFile)(process.execPath, [
      'dist/scripts/bench/main.js',
      ...given,
      ...mongodb,
    ]);
    const { measurements } = JSON.parse(await readFile(file, 'utf8')) as { measurements: Measurement[] };
    expect(measurements.map(({ workload }) => workload)).toEqual(WORKLOADS.map(({ id }) => id));
    for (const { workload, rounds } of measurements) {
      const [{ perSecond, errors } = { perSecond: 0, errors: 1 }] = rounds;
      expect({ workload, works: perSecond > 0, errors }).toEqual({ workload, works: true, errors: 0 });
      expect(stdout).toContain(`| ${workload} |`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
