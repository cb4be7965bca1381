/** The steps of a run: what happens to the world, drawn by fast-check. */
import fc from 'fast-check';
import { DEVICE_MODES, type DeviceMode } from './command-device.js';
import { COMMAND_KINDS, type CommandKind } from './database/network.js';
import { type SmallLimits, smallLimits } from './limits.js';
import { READINGS, type Reading } from './packing.js';
import { RECEIVER_FAULTS, type ReceiverFault } from './receivers.js';

export type Step = {
  /** The seed of everything random until the next step. */
  readonly salt: number;
  /** How long until the next step. */
  readonly ms: number;
} & (
  | {
      readonly kind: 'send';
      readonly device: number;
      readonly count: number;
      readonly time: 'none' | 'late' | 'future';
    }
  | { readonly kind: 'share' | 'unshare'; readonly device: number; readonly user: number }
  | { readonly kind: 'rename' | 'remove' | 'create'; readonly device: number }
  | { readonly kind: 'move'; readonly user: number; readonly group: number }
  | { readonly kind: 'revoke' | 'disconnect' | 'stall'; readonly client: number }
  /** The client comes again at once, while its user, which was changed a moment ago, is moved. */
  | { readonly kind: 'return'; readonly client: number; readonly group: number; readonly apartMs: number }
  | { readonly kind: 'kill' | 'freeze'; readonly instance: number; readonly downMs: number }
  | { readonly kind: 'skew'; readonly instance: number; readonly skewMs: number }
  | { readonly kind: 'elect' | 'isolate' | 'rejoin' | 'drop cursors' | 'calm' }
  | { readonly kind: 'disturb'; readonly fault: 'requestLost' | 'replyLost' | 'late' | 'twice'; readonly share: number }
  | { readonly kind: 'shorten'; readonly kept: number }
  | { readonly kind: 'trouble'; readonly handler: number; readonly fault: ReceiverFault; readonly share: number }
  | { readonly kind: 'recover' | 'wait' }
  | StrikeStep
  | CommandStep
  | PresenceStep
  | PackingStep
);

/** A fault at a command that an instance sends to the database from now on. */
export interface StrikeStep {
  readonly kind: 'strike';
  readonly instance: number;
  readonly at: CommandKind;
  readonly moment: 'before' | 'after';
  readonly left: number;
  /** `lose all`: also the repetition by the driver; `die`: the command is late, and the process ends before its answer. */
  readonly fault: 'freeze' | 'kill' | 'elect' | 'lose' | 'lose all' | 'delay' | 'die';
  readonly downMs: number;
}

/** Of a run with commands. */
export type CommandStep = { readonly device: number; readonly user: number } & (
  | { readonly kind: 'order'; readonly ttlMs: number; readonly count?: number }
  | { readonly kind: 'end' }
  | { readonly kind: 'bar' | 'look' }
  | { readonly kind: 'drop'; readonly learnsMs: number }
  | { readonly kind: 'behave'; readonly mode: DeviceMode }
);

/** Of a run with presence. */
export type PresenceStep = { readonly device: number } & (
  | { readonly kind: 'break'; readonly learnsMs: number; readonly awayMs: number }
  | { readonly kind: 'silence'; readonly offlineAfterMs: number | null }
  /** It sends several messages, and the others between them. */
  | { readonly kind: 'burst'; readonly apartMs: number }
);

/** Of a run with packing. */
export type PackingStep = { readonly device: number } /** Packets of a while ago, so far apart. */ & (
  | { readonly kind: 'backlog'; readonly count: number; readonly agoMs: number; readonly apartMs: number }
  /** The device sends some again. */
  | { readonly kind: 'repeat'; readonly count: number }
  | { readonly kind: 'read'; readonly instance: number; readonly reading: Reading }
);

export type StepKind = Step['kind'];

/** Groups that a run may leave out: a fault that happens always hides what only happens without it. */
export const GROUPS: Readonly<Record<string, readonly StepKind[]>> = {
  rights: ['share', 'unshare', 'move', 'revoke', 'return'],
  updates: ['rename'],
  objects: ['remove', 'create'],
  clients: ['disconnect', 'stall'],
  kills: ['kill'],
  freezes: ['freeze', 'skew'],
  elections: ['elect'],
  partitions: ['isolate', 'rejoin'],
  streams: ['drop cursors'],
  history: ['shorten'],
  network: ['disturb', 'calm'],
  strikes: ['strike'],
};

/** As `GROUPS`, of what happens in a run with commands. */
export const COMMAND_GROUPS: Readonly<Record<string, readonly StepKind[]>> = {
  ends: ['end'],
  bars: ['bar'],
  drops: ['drop'],
  behavior: ['behave'],
  looks: ['look'],
  freezes: ['freeze'],
  kills: ['kill'],
  strikes: ['strike'],
};

/** As `GROUPS`, of what happens in a run with presence. */
export const PRESENCE_GROUPS: Readonly<Record<string, readonly StepKind[]>> = {
  breaks: ['break'],
  silences: ['silence'],
  bursts: ['burst'],
  freezes: ['freeze'],
  kills: ['kill'],
  strikes: ['strike'],
};

/** As `GROUPS`, of what happens in a run with packing. */
export const PACKING_GROUPS: Readonly<Record<string, readonly StepKind[]>> = {
  repeats: ['repeat'],
  freezes: ['freeze'],
  kills: ['kill'],
  strikes: ['strike'],
};

interface Added {
  readonly before: number;
  readonly step: Step;
}

export interface Plan {
  readonly instances: number;
  /** The groups that are left out. */
  readonly without: readonly string[];
  readonly steps: readonly Step[];
  /** In a run with workers: what else happens, each before the step of that number. Null in a run without. */
  readonly workers?: readonly Added[] | null;
  /** In a run with commands, which has no workers: what else happens. Null in a run without. */
  readonly commands?: AddedGroups | null;
  /** In a run with presence, which has neither: what else happens. Null in a run without. */
  readonly presence?: AddedGroups | null;
  /** In a run with packing, which has none of them: what else happens. Null in a run without. */
  readonly packing?: AddedGroups | null;
  /** Limits that are smaller than usual. */
  readonly limits?: SmallLimits;
}

interface AddedGroups {
  readonly without: readonly string[];
  readonly steps: readonly Added[];
}

/** What a run has beside ingest, changes and the live feed. */
export const EXTRAS = ['workers', 'commands', 'presence', 'packing'] as const;
export type Extra = (typeof EXTRAS)[number];

export const extraOf = (plan: Plan): Extra | null => EXTRAS.find((extra) => plan[extra]) ?? null;

const index = fc.nat({ max: 11 });
const downMs = fc.constantFrom(5, 50, 400, 3_000);

const shape = <K extends StepKind>(kind: K, fields: Record<string, fc.Arbitrary<unknown>> = {}): fc.Arbitrary<Step> =>
  fc.record({
    kind: fc.constant(kind),
    salt: fc.nat(),
    ms: fc.constantFrom(0, 1, 3, 10, 40, 200, 1_500),
    ...fields,
  }) as unknown as fc.Arbitrary<Step>;

const fault = fc.constantFrom('requestLost', 'replyLost', 'late', 'twice');

/** Most of them are short; some last longer than leases and answers. */
const strike = (
  downMs: fc.Arbitrary<number>,
  at: fc.Arbitrary<CommandKind>,
  faults: readonly StrikeStep['fault'][] = ['freeze', 'freeze', 'kill', 'elect', 'lose', 'lose all', 'delay', 'die'],
): fc.Arbitrary<Step> =>
  shape('strike', {
    instance: index,
    at,
    moment: fc.constantFrom('before', 'after'),
    left: fc.nat({ max: 2 }),
    fault: fc.constantFrom(...faults),
    downMs,
  });
const soon = fc.constantFrom(50, 400, 3_000);
const anyCommand = fc.constantFrom(...COMMAND_KINDS);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 30,
    arbitrary: shape('send', {
      device: index,
      count: fc.integer({ min: 1, max: 4 }),
      time: fc.constantFrom('none', 'none', 'late', 'future'),
    }),
  },
  { weight: 4, arbitrary: shape('share', { device: index, user: index }) },
  { weight: 4, arbitrary: shape('unshare', { device: index, user: index }) },
  { weight: 3, arbitrary: shape('rename', { device: index }) },
  { weight: 2, arbitrary: shape('remove', { device: index }) },
  { weight: 3, arbitrary: shape('create', { device: index }) },
  { weight: 2, arbitrary: shape('move', { user: index, group: index }) },
  { weight: 1, arbitrary: shape('revoke', { client: index }) },
  { weight: 6, arbitrary: shape('disconnect', { client: index }) },
  { weight: 3, arbitrary: shape('return', { client: index, group: index, apartMs: fc.integer({ min: 0, max: 12 }) }) },
  { weight: 3, arbitrary: shape('stall', { client: index }) },
  { weight: 4, arbitrary: shape('kill', { instance: index, downMs }) },
  { weight: 2, arbitrary: shape('freeze', { instance: index, downMs }) },
  { weight: 1, arbitrary: shape('skew', { instance: index, skewMs: fc.constantFrom(-60_000, -50, 0, 50, 30_000) }) },
  { weight: 6, arbitrary: shape('elect') },
  { weight: 5, arbitrary: shape('isolate') },
  { weight: 2, arbitrary: shape('rejoin') },
  { weight: 2, arbitrary: shape('drop cursors') },
  { weight: 3, arbitrary: shape('shorten', { kept: fc.constantFrom(0, 1, 5, 20) }) },
  { weight: 3, arbitrary: shape('disturb', { fault, share: fc.constantFrom(0.05, 0.3) }) },
  { weight: 2, arbitrary: shape('calm') },
  { weight: 4, arbitrary: strike(soon, fc.constantFrom('write', 'read')) },
);

/** Long enough for the lease of a partition to end. */
const leaseMs = fc.constantFrom(4_500, 7_000, 12_000);
const workerStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: shape('trouble', {
      handler: index,
      fault: fc.constantFrom(...RECEIVER_FAULTS),
      share: fc.constantFrom(0.3, 1),
      ms: fc.constantFrom(40, 400, 1_500),
    }),
  },
  { weight: 1, arbitrary: shape('recover') },
  { weight: 3, arbitrary: shape('wait', { ms: fc.constantFrom(1_500, 6_000) }) },
  { weight: 3, arbitrary: shape('freeze', { instance: index, downMs: leaseMs }) },
  { weight: 1, arbitrary: shape('kill', { instance: index, downMs: leaseMs }) },
  // Who comes back with a commit after another instance has taken over.
  { weight: 6, arbitrary: strike(fc.constantFrom(7_000, 12_000), fc.constantFrom('begin', 'commit'), ['freeze']) },
  // Whose messages are there for all to see before it knows.
  { weight: 5, arbitrary: strike(fc.constantFrom(1_500, 3_000), fc.constant('commit'), ['delay']) },
  { weight: 3, arbitrary: strike(leaseMs, anyCommand) },
  { weight: 3, arbitrary: strike(soon, anyCommand) },
);
const workers = fc.array(fc.record({ before: fc.nat({ max: 60 }), step: workerStep }), { minLength: 4, maxLength: 18 });

const ordered = { device: index, user: index };
const commandStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: shape('order', {
      ...ordered,
      ttlMs: fc.constantFrom(1_000, 3_000, 15_000, 86_400_000, 86_400_000),
      count: fc.constantFrom(1, 1, 2, 3),
    }),
  },
  { weight: 2, arbitrary: shape('end', ordered) },
  { weight: 1, arbitrary: shape('bar', ordered) },
  { weight: 5, arbitrary: shape('drop', { ...ordered, learnsMs: fc.constantFrom(1, 50, 2_000, 25_000) }) },
  { weight: 4, arbitrary: shape('behave', { ...ordered, mode: fc.constantFrom(...DEVICE_MODES) }) },
  { weight: 2, arbitrary: shape('freeze', { instance: index, downMs: fc.constantFrom(50, 1_500, 4_000) }) },
  { weight: 2, arbitrary: shape('kill', { instance: index, downMs }) },
  { weight: 3, arbitrary: shape('look', ordered) },
  // Longer than a connection waits for a confirmation.
  { weight: 1, arbitrary: shape('wait', { ms: fc.constantFrom(6_000, 22_000) }) },
  { weight: 4, arbitrary: strike(soon, fc.constantFrom('write', 'write', 'read')) },
);

const presenceStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: shape('break', {
      device: index,
      learnsMs: fc.constantFrom(1, 50, 2_000, 25_000),
      // Half of them come again in the moment in which their end is stored.
      awayMs: fc.oneof(fc.constantFrom(1, 50, 1_500, 4_000, 12_000), fc.integer({ min: 1_995, max: 2_020 })),
      ms: fc.constantFrom(1, 40, 1_500, 4_000),
    }),
  },
  { weight: 4, arbitrary: shape('burst', { device: index, apartMs: fc.constantFrom(0.3, 1, 3) }) },
  { weight: 4, arbitrary: shape('wait', { ms: fc.constantFrom(1_500, 4_000, 8_000) }) },
  {
    weight: 2,
    arbitrary: shape('silence', { device: index, offlineAfterMs: fc.constantFrom(null, 1_500, 4_000, 8_000) }),
  },
  { weight: 3, arbitrary: shape('freeze', { instance: index, downMs: fc.constantFrom(400, 3_000, 6_000, 9_000) }) },
  { weight: 3, arbitrary: shape('kill', { instance: index, downMs: fc.constantFrom(5, 400, 3_000, 9_000) }) },
  { weight: 4, arbitrary: strike(fc.constantFrom(50, 1_500, 6_000), fc.constantFrom('write', 'read')) },
);

const packingStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: shape('backlog', {
      device: index,
      count: fc.integer({ min: 15, max: 60 }),
      agoMs: fc.constantFrom(600_000, 7_200_000),
      apartMs: fc.constantFrom(0, 100, 5_000),
    }),
  },
  { weight: 4, arbitrary: shape('repeat', { device: index, count: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 6, arbitrary: shape('read', { device: index, instance: index, reading: fc.constantFrom(...READINGS) }) },
  { weight: 5, arbitrary: shape('wait', { ms: fc.constantFrom(6_000, 20_000, 62_000) }) },
  { weight: 2, arbitrary: shape('freeze', { instance: index, downMs: fc.constantFrom(400, 3_000, 9_000) }) },
  { weight: 2, arbitrary: shape('kill', { instance: index, downMs: fc.constantFrom(5, 3_000, 9_000) }) },
  { weight: 8, arbitrary: strike(fc.constantFrom(50, 3_000, 9_000), anyCommand) },
);

const addedGroups = (groups: Readonly<Record<string, unknown>>, step: fc.Arbitrary<Step>, minLength: number) =>
  fc.record({
    without: fc.subarray(Object.keys(groups)),
    steps: fc.array(fc.record({ before: fc.nat({ max: 60 }), step }), { minLength, maxLength: 30, size: 'max' }),
  });

export const plan: fc.Arbitrary<Plan> = fc.record({
  instances: fc.integer({ min: 1, max: 4 }),
  without: fc.subarray(Object.keys(GROUPS)),
  steps: fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }),
  // Workers are slow, and much is found without them.
  workers: fc.oneof({ weight: 8, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: workers }),
  commands: fc.oneof(
    { weight: 5, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: addedGroups(COMMAND_GROUPS, commandStep, 6) },
  ),
  // Drawn last: what was drawn before is what it was without.
  presence: fc.oneof(
    { weight: 8, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: addedGroups(PRESENCE_GROUPS, presenceStep, 6) },
  ),
  limits: smallLimits,
  packing: fc.oneof(
    { weight: 24, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: addedGroups(PACKING_GROUPS, packingStep, 10) },
  ),
});

/** What a run has beside its own steps. */
function addedTo(plan: Plan): readonly Added[] {
  const extra = extraOf(plan);
  if (extra === null || extra === 'workers') return plan.workers ?? [];
  const groups = { commands: COMMAND_GROUPS, presence: PRESENCE_GROUPS, packing: PACKING_GROUPS }[extra];
  const { without, steps } = plan[extra] as AddedGroups;
  const left = new Set(without.flatMap((group) => groups[group] ?? []));
  return steps.filter(({ step }) => !left.has(step.kind));
}

/** The steps of a plan without the groups that it leaves out. */
export function stepsOf(plan: Plan): Step[] {
  const { steps, without } = plan;
  const added = addedTo(plan);
  const left = new Set(without.flatMap((group) => GROUPS[group] ?? []));
  // A device without an object is nowhere, and has no presence.
  if (extraOf(plan) === 'presence') left.add('remove');
  const more = (nth: number): Step[] => added.filter(({ before }) => before === nth).map(({ step }) => step);
  return [...steps, null].flatMap((step, nth) => {
    const own = step === null || left.has(step.kind) ? [] : [step];
    const last = step === null ? added.filter(({ before }) => before > nth).map((one) => one.step) : [];
    return [...more(nth), ...last, ...own];
  });
}
