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
const NO_MORE = { without: [], steps: [] };
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

// A subscriber came again while the change stream could not be resumed. Its user was read before a move to the root group reached a
// majority, the new stream began after the move, and a subscriber that was still being authenticated was not among those whom the gap
// ends. It kept the rights of the former group, and missed what it could see from then on.
test('keeps no right that was read before a gap', async () => {
  const steps = [
    { kind: 'disturb', fault: 'late', share: 0.3 },
    { kind: 'elect', ms: 1_500 },
    { kind: 'remove', salt: 1_233_976_924, device: 0 },
    { kind: 'disconnect', salt: 597_862_324, client: 0, ms: 1 },
    { ...send(0, 3), salt: 24 },
    { kind: 'elect', salt: 6, ms: 1 },
    { kind: 'remove', device: 1 },
    { kind: 'disconnect', client: 2 },
    { kind: 'isolate' },
    { kind: 'disconnect', salt: 969_842_434, client: 5, ms: 40 },
    { kind: 'elect', salt: 2_147_483_622, ms: 200 },
    { kind: 'create', salt: 12, device: 2, ms: 1 },
    { ...send(0, 1_500), salt: 1_053_437_724 },
    { kind: 'shorten', salt: 2_147_483_629, kept: 5, ms: 10 },
    { kind: 'move', salt: 8, user: 1, group: 3, ms: 1 },
    { kind: 'share', salt: 1_745_494_392, device: 0, user: 11, ms: 3 },
    { kind: 'isolate', salt: 1_841_505_521 },
  ];
  await runPlan(planOf(1, steps));
});

// A client had received an event from one instance and came again at another one, whose change stream had failed for more than 5 s.
// That instance took the position for one of another database, told the client so, and sent the same event again when its stream
// delivered.
test('repeats nothing to a client that comes to an instance which is behind', async () => {
  const steps = [
    send(0),
    { kind: 'kill', instance: 0, downMs: 3_000 },
    { kind: 'remove', device: 1, ms: 200 },
    { kind: 'elect', salt: 1 },
    { ...send(0, 1_500), time: 'late' },
    { ...send(0), time: 'late' },
    { kind: 'disturb', fault: 'replyLost', share: 0.3 },
    { ...send(6), salt: 1_323_770_350, time: 'late' },
    { kind: 'remove', device: 0 },
    { ...send(0), time: 'future' },
    send(0),
    { ...send(1, 1_500), salt: 2 },
    { kind: 'create', salt: 1, device: 0, ms: 200 },
    { kind: 'unshare', device: 0, user: 0 },
    { kind: 'kill', instance: 1, downMs: 0, ms: 1 },
    { kind: 'disturb', fault: 'requestLost', share: 0, ms: 1_500 },
    { ...send(0, 1_500), time: 'late' },
    { kind: 'elect', salt: 1 },
  ];
  await runPlan(planOf(3, steps));
});

// A webhook had failed five times, so that its receiver was only probed, while messages of an object were in memory behind the one that
// had failed. Nobody dropped them from there: the pause of the object was over before that of the receiver, and the probe was the
// second message of the object. The first one came last.
test('repeats a message of a webhook before the later ones of its object, also after a pause of the receiver', async () => {
  const steps = [
    { kind: 'trouble', handler: 1, fault: 'fails', share: 1 },
    { ...send(2, 40), count: 4 },
    send(0, 200),
    { kind: 'wait', salt: 9, ms: 1_500 },
    { kind: 'wait', ms: 6_000 },
    { kind: 'wait', ms: 6_000 },
  ];
  await runPlan({ ...planOf(1, steps), workers: [] });
});

// Nothing had happened for longer than the oplog reached back when an instance took over partitions of another one. The history that
// they needed was gone, and filled again from what is stored up to the last change; the history after that was gone too, and they were
// filled again and again, as fast as the database answered, until the next change came.
test('fills partitions once where nothing has happened since the history was lost', async () => {
  const steps = [
    send(0, 1_500),
    { kind: 'wait', ms: 6_000 },
    { kind: 'shorten', kept: 0 },
    { kind: 'kill', instance: 1, downMs: 12_000 },
    { kind: 'wait', ms: 6_000 },
    { kind: 'wait', ms: 1_500 },
  ];
  const { census } = await runPlan({ ...planOf(2, steps), workers: [] });
  expect(census.get('workers: history refilled')).toBeGreaterThan(0);
});

// The history of partitions was gone, and what is stored of the last minute was evaluated again on states that it had led to: alarms
// that had ended were cleared or raised anew, and their commands were sent twice.
test('evaluates packets once where history is lost that was evaluated in part', async () => {
  const steps = [
    { ...send(0, 200), count: 4 },
    { ...send(0, 1_500), count: 4 },
    { kind: 'wait', ms: 6_000 },
    { kind: 'shorten', kept: 0 },
    { kind: 'kill', instance: 0, downMs: 12_000 },
    { ...send(0, 1_500), count: 4 },
    { kind: 'shorten', kept: 0 },
    { kind: 'wait', ms: 6_000 },
    { kind: 'shorten', kept: 0 },
  ];
  const { census } = await runPlan({ ...planOf(2, steps), workers: [] });
  expect(census.get('workers: history refilled')).toBeGreaterThan(0);
});

// An instance that took a partition over looked at the packets that were stored before by its own clock. Where that is behind, the
// newest of them was not among them, and packets older than it were evaluated once more.
test('ignores packets older than the last one that another instance has evaluated', async () => {
  const steps = [
    send(0),
    { ...send(0), count: 3, time: 'late' },
    { kind: 'skew', instance: 0, skewMs: -25_000 },
    { kind: 'wait', ms: 6_000 },
    { kind: 'kill', instance: 0, downMs: 3_000, ms: 1_500 },
    { ...send(0), count: 3 },
    { kind: 'wait', ms: 6_000 },
  ];
  const { census } = await runPlan({ ...planOf(1, steps), workers: [] });
  expect(census.get('workers: history refilled') ?? 0).toBe(0);
});

// The history was gone, and what was stored since then was read from a primary that no majority followed any more. Alarms were raised by
// packets that the next primary did not have, and an instance that still held their outputs committed them there.
test('raises no alarm by a packet that an election has undone', async () => {
  const steps = [
    { ...send(1, 40), salt: 5_000_015 },
    { kind: 'isolate', salt: 5_000_016 },
    { kind: 'rename', salt: 5_000_017, device: 0, ms: 40 },
    { ...send(1, 10), salt: 5_000_018, count: 9 },
    { kind: 'drop cursors', salt: 5_000_019, ms: 1 },
    { kind: 'shorten', salt: 5_000_020, kept: 0, ms: 1_500 },
    { kind: 'elect', salt: 5_000_021, ms: 1 },
    { kind: 'freeze', salt: 5_000_022, instance: 0, downMs: 12_000, ms: 1_500 },
  ];
  const { census } = await runPlan({ ...planOf(1, steps), workers: [] });
  expect(census.get('workers: history refilled')).toBeGreaterThan(0);
});

// A device had come again at another instance while its former one did not know that its connection was broken. Both connections were
// woken by a command: the new one sent it, the broken one took it over, and the confirmation of the new one was not stored, because it
// had the command no more. So it took the command back, and the device got it twice over one connection.
test('sends a command once to a connection that confirms it after another one has taken it', async () => {
  const steps = [
    { kind: 'move', salt: 1_990_040_547, ms: 1, user: 11, group: 7 },
    { kind: 'unshare', salt: 1_934_738_262, ms: 1, device: 4, user: 0 },
    { kind: 'drop', salt: 441_138_479, ms: 10, device: 6, user: 4, learnsMs: 2_000 },
    { kind: 'order', salt: 1_326_168_229, ms: 1_500, device: 2, user: 7, ttlMs: 86_400_000 },
  ];
  const { census } = await runPlan({ ...planOf(3, steps), commands: NO_MORE });
  expect(census.get('command: taken over')).toBeGreaterThan(0);
});

// A primary that reached no majority stored a command, and answered its sender 503. A device that polls read it and carried it out. The
// next primary did not have the command.
test('shows a device no command that an election undoes', async () => {
  const steps = [
    { kind: 'isolate', salt: 2_147_483_633, ms: 3 },
    { kind: 'order', salt: 2_147_483_622, ms: 1, device: 1, user: 11, ttlMs: 3_000 },
    { kind: 'drop', salt: 17, ms: 40, device: 1, user: 10, learnsMs: 2_000 },
    { kind: 'elect', salt: 19, ms: 40 },
    { kind: 'kill', salt: 1_091_662_916, ms: 40, instance: 1, downMs: 3_000 },
  ];
  await runPlan({ ...planOf(2, steps), commands: NO_MORE });
});

// A connection claimed a command, and both answers of the database were lost. Its next claims looked only for commands that others hold, so
// that the command waited until the device came again, or the command expired.
test('sends a command whose claim had no answer, on the same connection', async () => {
  const lose = { kind: 'strike', instance: 0, at: 'write', moment: 'after', fault: 'lose', downMs: 0 };
  const steps = [
    { ...lose, left: 2 },
    { ...lose, left: 0 },
    { kind: 'order', ms: 1_500, device: 0, user: 0, ttlMs: 86_400_000 },
  ];
  const { census } = await runPlan({ ...planOf(1, steps), commands: NO_MORE });
  expect(census.get('log: failed to send commands; retrying')).toBe(1);
});

// A primary that reached no majority had an object shared with a user, who sent it a command. The next primary did not have the share; the
// command was stored there, since its write was repeated, and acknowledged.
test('takes no command of a user whose right an election undoes', async () => {
  const steps = [
    { kind: 'isolate' },
    { kind: 'share', ms: 10, device: 0, user: 2 },
    { kind: 'order', ms: 1_500, device: 0, user: 2, ttlMs: 86_400_000 },
    { kind: 'elect', salt: 8, ms: 1_500 },
  ];
  const { census } = await runPlan({ ...planOf(1, steps), commands: NO_MORE });
  expect(census.get('sender: 404')).toBe(1);
});

const command = { device: 0, user: 0, salt: 1, ms: 40 };
const COMMANDS = {
  workers: null,
  commands: {
    without: [],
    steps: [
      { before: 1, step: { ...command, kind: 'order', ttlMs: 3_000 } },
      { before: 2, step: { ...command, kind: 'drop', learnsMs: 50 } },
      { before: 2, step: { ...command, kind: 'order', device: 1, ttlMs: 3_000 } },
    ],
  },
} as const;

const PRESENCE = { ...planOf(2, [send(0, 40), { kind: 'elect', ms: 400 }, send(2, 1_500)]), presence: NO_MORE };

const PACKING: Plan = {
  ...planOf(2, [
    { kind: 'disconnect', client: 0, ms: 62_000 },
    { kind: 'kill', instance: 0, downMs: 400, ms: 3_000 },
  ]),
  limits: { historyPage: 3 },
  packing: {
    without: [],
    steps: [
      { kind: 'backlog', device: 0, count: 60, agoMs: 7_200_000, apartMs: 100 },
      { kind: 'repeat', device: 0, count: 5 },
      { kind: 'read', device: 0, instance: 1, reading: 'all' },
    ].map((step, before) => ({ before, step: { salt: 0, ms: 10, ...step } as Step })),
  },
};

test('runs twice in the same way, and uses nothing real', async () => {
  const plans = fc.sample(plan, { seed: 7, numRuns: 3 });
  for (const drawn of [
    ...plans,
    { ...(plans[0] as Plan), workers: [] },
    { ...(plans[1] as Plan), ...COMMANDS },
    PRESENCE,
    PACKING,
  ]) {
    const first = await runPlan(drawn, { isGuarded: true });
    const second = await runPlan(drawn);
    expect(second.trace).toEqual(first.trace);
    expect(first.events).toBeGreaterThan(100);
  }
});

const simulate = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['test/simulation/simulate.mjs', ...args]);

test('prints a line for each run, and what the runs have reached', async () => {
  const { stdout } = await simulate('--seed', '3', '--runs', '2');
  expect(stdout).toMatch(/^run 0: seed 3, .*\nrun 1: seed 4, .*\n/);
  expect(stdout).toContain(' client: resumes\n');
});

test.each([
  ['--seed', 'banana', '--seed: expected a whole number of at most 2147483647, not "banana"\n'],
  ['--runs', '1e3', '--runs: expected a whole number of at most 1000000, not "1e3"\n'],
  ['--only', 'banana', '--only: expected one of plain, workers, commands, presence, packing, not "banana"\n'],
])('refuses %s %s with a sentence', async (name, value, sentence) => {
  await expect(simulate(name, value)).rejects.toMatchObject({ code: 2, stderr: sentence });
});
