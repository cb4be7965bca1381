/**
 * Says how soon the simulation notices bugs: applies each patch of `mutations/` to a copy of the code, runs worlds of several seeds
 * until one fails, and prints a row of the table in docs/reliability.md.
 * `tsx test/simulation/mutate.ts [--seeds 5] [--runs 2000] [--only <kind>] [<part of a name> …]`
 */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values, positionals: wanted } = parseArgs({
  options: {
    seeds: { type: 'string', default: '5' },
    runs: { type: 'string', default: '2000' },
    only: { type: 'string' },
  },
  allowPositionals: true,
});
const ONLY = values.only === undefined ? [] : ['--only', values.only];
const SEEDS = Array.from({ length: Number(values.seeds) }, (_, nth) => nth + 1);
const RUNS_MAX = Number(values.runs);
/** Seeds of one series must not meet those of another. */
const SEED_STEP = 1_000_000;
const PATCHES = 'test/simulation/mutations';

function copyOf(patch: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'vigil-mutation-'));
  for (const name of ['src', 'test', 'scripts', 'package.json', 'tsconfig.json'])
    cpSync(name, join(folder, name), { recursive: true });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  execFileSync('patch', ['-p1', '--quiet', '--fuzz=0', '-i', resolve(PATCHES, patch)], { cwd: folder });
  return folder;
}

/** The number of the run that fails; null if none does. */
async function runsUntilCaught(folder: string, seed: number): Promise<number | null> {
  const program = ['--max-semi-space-size=64', 'test/simulation/simulate.mjs'];
  const series = ['--seed', String(seed * SEED_STEP), '--runs', String(RUNS_MAX)];
  const child = spawn(process.execPath, [...program, ...series, ...ONLY], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface(child.stdout)) {
    const found = /^run (\d+) failed/.exec(line);
    if (found === null) continue;
    process.kill(-(child.pid as number), 'SIGKILL');
    return Number(found[1]) + 1;
  }
  return null;
}

for (const patch of readdirSync(PATCHES).sort()) {
  const name = patch.replace(/\.patch$/, '');
  if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue;
  const folder = copyOf(patch);
  try {
    const counts: string[] = [];
    for (const seed of SEEDS) counts.push(String((await runsUntilCaught(folder, seed)) ?? `not in ${RUNS_MAX}`));
    process.stdout.write(`| \`${name}\` | ${counts.join(' | ')} |\n`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
