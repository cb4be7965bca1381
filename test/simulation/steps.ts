/** The steps of a run: what happens to the world, drawn by fast-check. */
import fc from 'fast-check';
import { DEVICE_MODES, type DeviceMode } from './command-device.js';
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
  | { readonly kind: 'kill' | 'freeze'; readonly instance: number; readonly downMs: number }
  | { readonly kind: 'skew'; readonly instance: number; readonly skewMs: number }
  | { readonly kind: 'elect' | 'isolate' | 'rejoin' | 'drop cursors' | 'calm' }
  | { readonly kind: 'disturb'; readonly fault: 'requestLost' | 'replyLost' | 'late' | 'twice'; readonly share: number }
  | { readonly kind: 'shorten'; readonly kept: number }
  | { readonly kind: 'trouble'; readonly handler: number; readonly fault: ReceiverFault; readonly share: number }
  | { readonly kind: 'recover' | 'wait' }
  | CommandStep
);

/** Of a run with commands. */
export type CommandStep = { readonly device: number; readonly user: number } & (
  | { readonly kind: 'order'; readonly ttlMs: number }
  | { readonly kind: 'end' }
  | { readonly kind: 'bar' }
  | { readonly kind: 'drop'; readonly learnsMs: number }
  | { readonly kind: 'behave'; readonly mode: DeviceMode }
);

export type StepKind = Step['kind'];

/** Groups that a run may leave out: a fault that happens always hides what only happens without it. */
export const GROUPS: Readonly<Record<string, readonly StepKind[]>> = {
  rights: ['share', 'unshare', 'move', 'revoke'],
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
};

/** As `GROUPS`, of what happens in a run with commands. */
export const COMMAND_GROUPS: Readonly<Record<string, readonly StepKind[]>> = {
  ends: ['end'],
  bars: ['bar'],
  drops: ['drop'],
  behavior: ['behave'],
  freezes: ['freeze'],
  kills: ['kill'],
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
  readonly commands?: { readonly without: readonly string[]; readonly steps: readonly Added[] } | null;
}

export const hasCommands = ({ workers, commands }: Plan): boolean =>
  (workers ?? null) === null && (commands ?? null) !== null;

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
      ms: fc.constantFrom(40, 1_500, 6_000),
    }),
  },
  { weight: 1, arbitrary: shape('recover') },
  { weight: 5, arbitrary: shape('wait', { ms: fc.constantFrom(1_500, 6_000) }) },
  { weight: 3, arbitrary: shape('freeze', { instance: index, downMs: leaseMs }) },
  { weight: 1, arbitrary: shape('kill', { instance: index, downMs: leaseMs }) },
);
const workers = fc.array(fc.record({ before: fc.nat({ max: 60 }), step: workerStep }), { minLength: 4, maxLength: 14 });

const ordered = { device: index, user: index };
const commandStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: shape('order', { ...ordered, ttlMs: fc.constantFrom(1_000, 3_000, 15_000, 86_400_000) }) },
  { weight: 2, arbitrary: shape('end', ordered) },
  { weight: 1, arbitrary: shape('bar', ordered) },
  { weight: 5, arbitrary: shape('drop', { ...ordered, learnsMs: fc.constantFrom(1, 50, 2_000, 25_000) }) },
  { weight: 4, arbitrary: shape('behave', { ...ordered, mode: fc.constantFrom(...DEVICE_MODES) }) },
  { weight: 2, arbitrary: shape('freeze', { instance: index, downMs: fc.constantFrom(50, 1_500, 4_000) }) },
  { weight: 2, arbitrary: shape('kill', { instance: index, downMs }) },
);
const commands = fc.record({
  without: fc.subarray(Object.keys(COMMAND_GROUPS)),
  steps: fc.array(fc.record({ before: fc.nat({ max: 60 }), step: commandStep }), {
    minLength: 6,
    maxLength: 30,
    size: 'max',
  }),
});

export const plan: fc.Arbitrary<Plan> = fc.record({
  instances: fc.integer({ min: 1, max: 4 }),
  without: fc.subarray(Object.keys(GROUPS)),
  steps: fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }),
  // Workers are slow, and much is found without them.
  workers: fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: workers }),
  // Drawn last: what was drawn before is what it was without.
  commands: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: commands }),
});

/** What a run has beside its own steps. */
function addedTo(plan: Plan): readonly Added[] {
  if (plan.workers || !plan.commands) return plan.workers ?? [];
  const left = new Set(plan.commands.without.flatMap((group) => COMMAND_GROUPS[group] ?? []));
  return plan.commands.steps.filter(({ step }) => !left.has(step.kind));
}

/** The steps of a plan without the groups that it leaves out. */
export function stepsOf(plan: Plan): Step[] {
  const { steps, without } = plan;
  const added = addedTo(plan);
  const left = new Set(without.flatMap((group) => GROUPS[group] ?? []));
  const more = (nth: number): Step[] => added.filter(({ before }) => before === nth).map(({ step }) => step);
  return [...steps, null].flatMap((step, nth) => {
    const own = step === null || left.has(step.kind) ? [] : [step];
    const last = step === null ? added.filter(({ before }) => before > nth).map((one) => one.step) : [];
    return [...more(nth), ...last, ...own];
  });
}
