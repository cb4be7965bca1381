/** The measurement of packed history of `npm run bench`, on little data and for a moment. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { testUri } from '../support/fixture.js';

test('measures made data and a recording, beside Parquet', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'vigil-bench-test-'));
  try {
    const lines = Array.from({ length: 250 }, (_, index) => `${1_700_000_000_000 + index * 1_000},${index / 10}`);
    await writeFile(join(folder, 'pump.csv'), `time,pressure\n${lines.join('\n')}\n`);
    const given = ['--only', 'P', '--seconds', '0.01', '--scale', '0.2', '--recordings', folder];
    const mongodb = ['--mongodb', testUri()];
    const { stdout } = await promisify(execFile)(process.execPath, [
      'dist/scripts/bench/main.js',
      ...given,
      ...mongodb,
    ]);
    const rows = stdout.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| Packets'));
    const measured = rows.map((row) => row.split(' | ').slice(0, 3).join(' | '));
    expect(measured.filter((row) => row.startsWith('| pump'))).toEqual([
      '| pump | of the service | 200',
      '| pump | of devices | 200',
    ]);
    for (const name of ['car, made', 'machine, made', 'random doubles']) {
      expect(measured.filter((row) => row.startsWith(`| ${name}`))).toHaveLength(6);
    }
    for (const row of rows) expect(row).not.toMatch(/–|NaN/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
