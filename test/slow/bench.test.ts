/** The measurements of `npm run bench`, each on little data and for a moment. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import type { Measurement } from '../../scripts/bench/table.js';
import { WORKLOADS } from '../../scripts/bench/workloads.js';

test('measures every workload', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-bench-test-'));
  try {
    const file = join(folder, 'results.json');
    const given = ['--rounds', '1', '--seconds', '0.2', '--scale', '0.01', '--servers', 'ours', '--json', file];
    const mongodb = ['--mongodb', process.env.TEST_MONGODB_URI as string];
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
}, 600_000);

test('measures webhooks, and delivers every event', async () => {
  const given = ['--only', 'H', '--rounds', '1', '--seconds', '0.2', '--scale', '0.01'];
  const mongodb = ['--mongodb', process.env.TEST_MONGODB_URI as string];
  const { stdout } = await promisify(execFile)(process.execPath, ['dist/scripts/bench/main.js', ...given, ...mongodb]);
  for (const id of ['H1', 'H2', 'H3', 'H4', 'W6', 'W6b']) expect(stdout).toContain(`| ${id} |`);
  expect(stdout).toContain('| 1,000 events at once |');
}, 600_000);

test('measures the console in a browser, and prints the bar of each value', async () => {
  const given = ['--only', 'console', '--seconds', '1', '--scale', '0.002'];
  const mongodb = ['--mongodb', process.env.TEST_MONGODB_URI as string];
  const { stdout } = await promisify(execFile)(process.execPath, ['dist/scripts/bench/main.js', ...given, ...mongodb]);
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
}, 600_000);
