/** Runs of the simulation that once failed, and what a run must be: the same each time, and nothing real. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { type Plan, plan, type Step } from '../../simulation/steps.js';
import { runPlan } from '../../simulation/world.js';
import { fc } from '../../support/runs.js';

const planOf = (instances: number, steps: readonly object[]): Plan => ({
  instances,
  without: [],
  steps: steps.map((step) => ({ salt: 0, ms: 0, ...step }) as Step),
});
const send = (device: number, ms = 0) => ({ kind: 'send', device, count: 1, time: 'none', ms });

// A user was moved to another group, and the move reached no majority. An instance that started then read the user as moved, and
// kept that. The next primary did not have the move, so that no change ever corrected it: the user saw objects of the other group.
test('keeps no right that an election has undone', async () => {
  const steps = [
    send(0),
    { kind: 'unshare', device: 0, user: 0, ms: 40 },
    { kind: 'isolate' },
    { kind: 'move', user: 8, group: 0 },
    { kind: 'kill', salt: 127_871_599, instance: 0, downMs: 5 },
    send(0, 1_500),
    { kind: 'isolate' },
    { kind: 'elect' },
    send(0),
    { kind: 'isolate' },
    { kind: 'rename', device: 0 },
    { kind: 'kill', instance: 0, downMs: 5 },
    { kind: 'elect' },
  ];
  await runPlan(planOf(1, steps));
});

test('runs twice in the same way, and uses nothing real', async () => {
  for (const drawn of fc.sample(plan, { seed: 7, numRuns: 3 })) {
    const first = await runPlan(drawn, { isGuarded: true });
    const second = await runPlan(drawn);
    expect(second.trace).toEqual(first.trace);
    expect(first.events).toBeGreaterThan(100);
  }
});

const simulate = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['node_modules/tsx/dist/cli.mjs', 'test/simulation/main.ts', ...args]);

test('prints a line for each run, and what the runs have reached', async () => {
  const { stdout } = await simulate('--seed', '3', '--runs', '2');
  expect(stdout).toMatch(/^run 0: seed 3, .*\nrun 1: seed 4, .*\n/);
  expect(stdout).toContain(' client: resumes\n');
});

test.each([
  ['--seed', 'banana', '--seed: expected a whole number of at most 2147483647, not "banana"\n'],
  ['--runs', '1e3', '--runs: expected a whole number of at most 1000000, not "1e3"\n'],
])('refuses %s %s with a sentence', async (name, value, sentence) => {
  await expect(simulate(name, value)).rejects.toMatchObject({ code: 2, stderr: sentence });
});
