/**
 * The states of a rule for one object: idle, pending (the condition holds, but not yet for long enough), raised, clearing (it has ended,
 * but not yet for long enough). All times are those of the object's clock; what follows from time alone happens at its own instant,
 * whenever it is computed. Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import { Steps } from '../core/rule/metering.js';
import { isOpen, nextOpening, type Schedule } from '../core/rule/schedule.js';
import { type CompiledRule, type PacketInput, type Reading, type Truth, UNREAD } from './evaluate.js';

export type Phase = 'idle' | 'pending' | 'raised' | 'clearing';

export interface RuleState {
  readonly phase: Phase;
  /** Since when: of pending, the condition holds; of raised, the alarm; of clearing, the condition has ended. */
  readonly sinceMs: number;
  /** What began it: the `_id` of a packet, or an instant. */
  readonly begunBy: string;
  readonly readings: readonly Reading[];
  /** The alarm that is raised. */
  readonly alarmId: string | null;
  /** When the last data packet came; kept only for rules on silence. */
  readonly heardMs: number | null;
  /** Of an object that was never heard: when it, or the rule, began. By the service's clock, for want of another one. */
  readonly startedMs: number | null;
}

/** What an alarm is raised with. */
export interface Raise {
  readonly kind: 'raise';
  readonly alarmId: string;
  readonly atMs: number;
  readonly readings: readonly Reading[];
}

export interface Clear {
  readonly kind: 'clear';
  readonly alarmId: string;
  readonly atMs: number;
}

export type Effect = Raise | Clear;

export type Input =
  | {
      readonly kind: 'packet';
      readonly atMs: number;
      readonly packetId: string;
      readonly read: PacketInput;
      /** Those of all expressions of the rule; by default as many as one may take. */
      readonly steps?: Steps | undefined;
    }
  /** A data packet that is older than another one: it says only that the object was heard. */
  | { readonly kind: 'heard'; readonly atMs: number }
  | { readonly kind: 'tick'; readonly atMs: number };

export interface Step {
  readonly state: RuleState;
  readonly effects: readonly Effect[];
}

export interface MachineParts {
  readonly rule: CompiledRule;
  /** The `_id` of the alarm that this packet, or instant, begins. */
  readonly toAlarmId: (begunBy: string) => string;
}

/** How often time alone may change a state in one step. A schedule opens, `for` ends, silence begins, `clearFor` ends. */
const TIMED_STEPS = 16;

export function initialState({ singles }: CompiledRule): RuleState {
  const readings = singles.map(() => UNREAD);
  return { phase: 'idle', sinceMs: 0, begunBy: '', readings, alarmId: null, heardMs: null, startedMs: null };
}

/** Since when an object is silent, unless it is heard; null where the rule does not ask. */
const silentSince = ({ heardMs, startedMs }: RuleState): number | null => heardMs ?? startedMs;

/** The state after an input; the same object where nothing has changed. */
export function step(parts: MachineParts, before: RuleState, input: Input): Step {
  const effects: Effect[] = [];
  let state = advance(parts, before, { toMs: input.atMs, isIncluded: input.kind === 'tick' }, effects);
  if (input.kind === 'packet') {
    state = read(parts.rule, state, input);
    state = settle(parts, state, { atMs: input.atMs, begunBy: input.packetId }, effects);
  } else if (input.kind === 'heard' && parts.rule.silentMs !== null) {
    state = hear(parts.rule, state, input.atMs);
    state = settle(parts, state, { atMs: input.atMs, begunBy: String(input.atMs) }, effects);
  }
  return { state, effects };
}

/** When time alone changes the state next; null where it does not. */
export function nextDue({ singles, when, settings }: CompiledRule, state: RuleState): number | null {
  const due: number[] = [];
  const { phase, sinceMs, readings } = state;
  const quietSinceMs = silentSince(state);
  if (phase === 'pending') due.push(sinceMs + settings.forMs);
  if (phase === 'clearing') due.push(sinceMs + settings.clearForMs);
  for (const [index, { silentMs }] of singles.entries()) {
    if (silentMs === null || quietSinceMs === null || readings[index]?.truth === true) continue;
    due.push(quietSinceMs + silentMs);
  }
  if (phase === 'idle' && settings.schedule !== null && when(readings) === true) {
    due.push(nextOpening(settings.schedule, sinceMs));
  }
  return due.length === 0 ? null : Math.min(...due);
}

/** Whether a state says nothing that the next packet does not say again. */
export function isDefault({ singles, settings }: CompiledRule, state: RuleState): boolean {
  const [first, ...others] = singles;
  const isSimple = others.length === 0 && first?.hasMemory === false && settings.schedule === null;
  return state.phase === 'idle' && silentSince(state) === null && isSimple;
}

/** Whether another instance would go on differently from the one state than from the other. */
export function isOtherState({ singles }: CompiledRule, before: RuleState, after: RuleState): boolean {
  if (before === after) return false;
  if (before.phase !== after.phase || before.sinceMs !== after.sinceMs || before.alarmId !== after.alarmId) return true;
  if ((before.heardMs === null) !== (after.heardMs === null) || before.startedMs !== after.startedMs) return true;
  return after.readings.some((reading, index) => {
    const earlier = before.readings[index] as Reading;
    if (reading === earlier) return false;
    return (
      reading.truth !== earlier.truth ||
      (singles[index]?.hasMemory === true && !isDeepStrictEqual(reading.value, earlier.value))
    );
  });
}

interface Until {
  readonly toMs: number;
  readonly isIncluded: boolean;
}

/** What happens by time alone before an instant. */
function advance(parts: MachineParts, before: RuleState, { toMs, isIncluded }: Until, effects: Effect[]): RuleState {
  let state = before;
  for (let steps = 0; steps < TIMED_STEPS; steps++) {
    const atMs = nextDue(parts.rule, state);
    if (atMs === null || (isIncluded ? atMs > toMs : atMs >= toMs)) return state;
    state = settle(parts, silence(parts.rule, state, atMs), { atMs, begunBy: String(atMs) }, effects);
  }
  return state;
}

function silence({ singles }: CompiledRule, state: RuleState, atMs: number): RuleState {
  const sinceMs = silentSince(state);
  if (sinceMs === null) return state;
  const readings = state.readings.map((reading, index): Reading => {
    const silentMs = singles[index]?.silentMs ?? null;
    const isSilent = silentMs !== null && reading.truth !== true && sinceMs + silentMs <= atMs;
    return isSilent ? { truth: true, sinceMs, value: atMs - sinceMs } : reading;
  });
  return { ...state, readings };
}

function hear({ singles }: CompiledRule, state: RuleState, atMs: number): RuleState {
  const readings = state.readings.map((reading, index): Reading => {
    if ((singles[index]?.silentMs ?? null) === null || reading.truth === false) return reading;
    return { truth: false, sinceMs: atMs, value: null };
  });
  return { ...state, readings, heardMs: Math.max(state.heardMs ?? atMs, atMs) };
}

function read(
  rule: CompiledRule,
  before: RuleState,
  { atMs, read: input, steps = new Steps() }: Extract<Input, { kind: 'packet' }>,
): RuleState {
  const state = rule.silentMs !== null && input.isData ? hear(rule, before, atMs) : before;
  let readings: Reading[] | null = null;
  for (const [index, single] of rule.singles.entries()) {
    if (single.silentMs !== null) continue;
    const earlier = state.readings[index] as Reading;
    const found = single.find(input, earlier, steps);
    if (found === null || (found.truth === earlier.truth && found.value === earlier.value)) continue;
    readings ??= [...state.readings];
    const sinceMs = found.truth === earlier.truth ? earlier.sinceMs : atMs;
    readings[index] = { truth: found.truth, sinceMs, value: found.value };
  }
  return readings === null ? state : { ...state, readings };
}

interface Cause {
  readonly atMs: number;
  readonly begunBy: string;
}

function settle(parts: MachineParts, state: RuleState, cause: Cause, effects: Effect[]): RuleState {
  const { rule } = parts;
  const clear = rule.clear(state.readings);
  if (state.phase === 'idle' || state.phase === 'pending') {
    const when = rule.when(state.readings);
    // What is over does not become raised, though it may be unknown whether it still holds.
    return settleQuiet(parts, state, { ...cause, when: clear === true ? false : when }, effects);
  }
  return settleRaised(rule, state, { atMs: cause.atMs, clear }, effects);
}

function settleQuiet(
  { rule: { settings }, toAlarmId }: MachineParts,
  before: RuleState,
  { atMs, begunBy, when }: Cause & { when: Truth },
  effects: Effect[],
): RuleState {
  const isWatched = settings.schedule === null || isOpen(settings.schedule, atMs);
  let state = before;
  if (state.phase === 'idle') {
    if (when !== true) return state;
    if (!isWatched) return untilOpening(settings.schedule, state, atMs);
    state = { ...state, phase: 'pending', sinceMs: atMs, begunBy };
  }
  if (when === false) return { ...state, phase: 'idle' };
  if (atMs - state.sinceMs < settings.forMs) return state;
  if (!isWatched) return { ...state, phase: 'idle', sinceMs: atMs };
  const alarmId = toAlarmId(state.begunBy);
  const raisedMs = state.sinceMs + settings.forMs;
  effects.push({ kind: 'raise', alarmId, atMs: raisedMs, readings: state.readings });
  return { ...state, phase: 'raised', sinceMs: raisedMs, alarmId };
}

/** Outside the hours, the next opening is looked for from the first instant at which the condition held. */
function untilOpening(schedule: Schedule | null, state: RuleState, atMs: number): RuleState {
  const isWaiting = schedule !== null && nextOpening(schedule, state.sinceMs) > atMs;
  return isWaiting ? state : { ...state, sinceMs: atMs };
}

function settleRaised(
  { settings }: CompiledRule,
  before: RuleState,
  cause: { atMs: number; clear: Truth },
  effects: Effect[],
): RuleState {
  const { clear } = cause;
  // Data may be a little older than what time alone has raised: an alarm ends at the earliest when it was raised.
  const atMs = Math.max(cause.atMs, before.sinceMs);
  let state = before;
  if (state.phase === 'raised') {
    if (clear !== true) return state;
    state = { ...state, phase: 'clearing', sinceMs: atMs };
  }
  if (clear === false) return { ...state, phase: 'raised' };
  if (atMs - state.sinceMs < settings.clearForMs) return state;
  effects.push({ kind: 'clear', alarmId: state.alarmId as string, atMs: state.sinceMs + settings.clearForMs });
  return { ...state, phase: 'idle', begunBy: '', alarmId: null };
}

/** An alarm that was cleared by somebody: the rule begins anew with the next packet. */
export function afterClearing(state: RuleState, alarmId: string): RuleState {
  return state.alarmId === alarmId ? { ...state, phase: 'idle', begunBy: '', alarmId: null } : state;
}

/** The state under other conditions: what is raised stays so until they end it. */
export function underOtherConditions(
  rule: CompiledRule,
  { phase, alarmId, sinceMs, begunBy, heardMs, startedMs }: RuleState,
): RuleState {
  const fresh = rule.silentMs === null ? initialState(rule) : { ...initialState(rule), heardMs, startedMs };
  return phase === 'raised' || phase === 'clearing' ? { ...fresh, phase: 'raised', alarmId, sinceMs, begunBy } : fresh;
}
