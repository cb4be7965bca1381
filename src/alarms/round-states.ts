/** The states that a round changes: they are kept once they are committed. */
import type { AnyBulkWriteOperation } from 'mongodb';
import type { Position } from '../core/position-fields.js';
import type { OutputWrite } from '../processing/commit.js';
import type { ActiveRule } from './active-rule.js';
import { toWaiting, type WaitingStep } from './escalation.js';
import { type Effect, initialState, isDefault, nextDue, type RuleState, underOtherConditions } from './machine.js';
import type { ObjectMemory } from './packet-reader.js';
import { forgetObject, type HeldState, type PartitionMemory, schedule, setState } from './partition-memory.js';
import type { RuleRegistry } from './rule-registry.js';
import { ALARM_STATES, toEvaluatedRemoval, toEvaluatedWrite, toStateRemoval, toStateWrite } from './states.js';

export interface RoundStates {
  readonly registry: RuleRegistry;
  readonly now: () => number;
  readonly partition: number;
  readonly held: PartitionMemory;
  /** By object, then by rule: null for one that ends. */
  readonly states: Map<string, Map<string, HeldState | null>>;
  readonly memories: Map<string, ObjectMemory>;
  /** The objects that are gone. */
  readonly gone: Set<string>;
}

/** An effect with the packet that completed it, and where the object was then. */
export interface CausedEffect {
  readonly effect: Effect;
  readonly packetId: string | null;
  readonly position: Position | null;
}

/** When time alone changes a state, by the service's clock; null where it does not. */
export function changesAt({ compiled }: ActiveRule, state: RuleState, memory: ObjectMemory | undefined): number | null {
  const dueMs = nextDue(compiled, state);
  return dueMs === null ? null : dueMs + (memory?.aheadMs ?? 0);
}

/** When there is something to be done without a packet. */
export function dueOf(
  rule: ActiveRule,
  { state, waiting }: HeldState,
  memory: ObjectMemory | undefined,
): number | null {
  const due = [changesAt(rule, state, memory) ?? [], waiting?.map(({ dueMs }) => dueMs) ?? []].flat();
  return due.length === 0 ? null : Math.min(...due);
}

export function stateOf({ states, held }: RoundStates, objectId: string, ruleId: string): HeldState | undefined {
  const own = states.get(objectId)?.get(ruleId);
  return own === undefined ? held.states.get(objectId)?.get(ruleId) : (own ?? undefined);
}

export function putState({ states }: RoundStates, objectId: string, ruleId: string, next: HeldState | null): void {
  const ofObject = states.get(objectId) ?? new Map<string, HeldState | null>();
  states.set(objectId, ofObject);
  ofObject.set(ruleId, next);
}

/** The rules that have a state for the object. */
export function rulesWithState({ states, held }: RoundStates, objectId: string): string[] {
  const ids = new Set([...(held.states.get(objectId)?.keys() ?? []), ...(states.get(objectId)?.keys() ?? [])]);
  return [...ids];
}

/** The state under the conditions of now. */
export function currentState(round: RoundStates, objectId: string, rule: ActiveRule): RuleState {
  const held = stateOf(round, objectId, rule.id);
  if (held === undefined) return initialState(rule.compiled);
  return held.key === rule.key ? held.state : underOtherConditions(rule.compiled, held.state);
}

interface NextState {
  readonly state: RuleState;
  /** What happened on the way to it. */
  readonly effects: readonly CausedEffect[];
  readonly isActing: boolean;
}

export function storeState(round: RoundStates, objectId: string, rule: ActiveRule, next: NextState): void {
  const waiting = waitingOf(round, objectId, rule, next);
  const held = { key: rule.key, state: next.state, waiting };
  putState(round, objectId, rule.id, isDefault(rule.compiled, next.state) ? null : held);
}

/** What follows while nobody acknowledges the alarm of a state. */
function waitingOf(
  round: RoundStates,
  objectId: string,
  rule: ActiveRule,
  { state: { alarmId }, effects, isActing }: NextState,
): readonly WaitingStep[] | null {
  if (alarmId === null) return null;
  const isRaised = effects.some(({ effect }) => effect.kind === 'raise' && effect.alarmId === alarmId);
  if (isRaised) return isActing ? toWaiting(rule.compiled.settings.escalation, round.now()) : null;
  const held = stateOf(round, objectId, rule.id);
  return held?.state.alarmId === alarmId ? held.waiting : null;
}

export const WITHOUT_EFFECTS = { effects: [], isActing: false };

/** The state goes on under the conditions of now. */
export const renewState = (round: RoundStates, objectId: string, rule: ActiveRule): void =>
  storeState(round, objectId, rule, { state: currentState(round, objectId, rule), ...WITHOUT_EFFECTS });

export function stateWrites(round: RoundStates): OutputWrite[] {
  const operations: AnyBulkWriteOperation[] = [];
  for (const [objectId, states] of round.states) {
    const memory = round.memories.get(objectId) ?? round.held.objects.get(objectId);
    for (const [ruleId, next] of states) {
      const before = round.held.states.get(objectId)?.get(ruleId);
      if (next === null && before === undefined) continue;
      const rule = round.registry.find(ruleId);
      if (next === null || rule === undefined) operations.push(toStateRemoval(ruleId, objectId));
      else if (next.state !== before?.state || next.waiting !== before.waiting) {
        const stored = { ruleId, objectId, ...next };
        operations.push(toStateWrite(round.partition, stored, dueOf(rule, next, memory)));
      }
    }
  }
  for (const [objectId, memory] of round.memories) operations.push(toEvaluatedWrite(round.partition, objectId, memory));
  for (const objectId of round.gone) operations.push(toEvaluatedRemoval(objectId));
  return operations.length === 0 ? [] : [{ collection: ALARM_STATES, operations }];
}

export function keepStates(round: RoundStates): void {
  const { held } = round;
  for (const [objectId, memory] of round.memories) {
    held.objects.set(objectId, memory);
    held.evaluated.delete(objectId);
  }
  for (const [objectId, states] of round.states) {
    for (const [ruleId, next] of states) {
      setState(held, objectId, ruleId, next);
      const rule = next === null ? undefined : round.registry.find(ruleId);
      const dueMs = rule === undefined || next === null ? null : dueOf(rule, next, held.objects.get(objectId));
      if (dueMs !== null) schedule(held, objectId, dueMs);
    }
  }
  for (const objectId of round.gone) forgetObject(held, objectId);
}
