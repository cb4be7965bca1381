/** One preparation of tasks: what they make of the states of a partition, and what is to be written. Nothing is kept until it is committed. */
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { Steps } from '../core/rule/metering.js';
import { startTurnClock, type TurnClock } from '../live/turn-clock.js';
import { collectBefore, type StoredPlace } from '../packets/store/reader.js';
import { toJson } from '../platform/mongo/bson/json-writer.js';
import type { OutputWrite } from '../processing/commit.js';
import { partitionOf } from '../processing/processor.js';
import type { ActiveRule } from './active-rule.js';
import type { AlarmParts } from './alarm-actions.js';
import { type ClearReason, isUnacknowledged } from './alarm-store.js';
import {
  escalateAlarm,
  type RaisedAlarm,
  raiseAlarms,
  showRefused,
  tellCleared,
  toClearing,
  toFollowing,
  type WritingParts,
} from './alarm-writes.js';
import { splitWaiting } from './escalation.js';
import { causedBy, type Evaluated, evaluatePacket, partsOf } from './evaluate-packet.js';
import { afterClearing, type Input, type RuleState, step } from './machine.js';
import {
  advanceTo,
  newMemory,
  type ObjectMemory,
  readPacket,
  receivedMsOf,
  remember,
  wasEvaluated,
} from './packet-reader.js';
import { objectsWithState, type PartitionMemory, schedule } from './partition-memory.js';
import {
  type CausedEffect,
  changesAt,
  currentState,
  keepStates,
  putState,
  type RoundStates,
  renewState,
  rulesWithState,
  stateOf,
  stateWrites,
  storeState,
  WITHOUT_EFFECTS,
} from './round-states.js';
import type { RuleObject, RuleObjects } from './rule-objects.js';
import { loadRule } from './rule-store.js';
import { findSelected } from './silent-objects.js';
import { ALARM_STATES, toRefilledWrite } from './states.js';

export interface RoundParts extends AlarmParts {
  readonly objects: RuleObjects;
}

/** A packet, when it came by the service's clock, and the position of its change; null for one that was found among those stored. */
export interface ArrivedPacket {
  readonly packet: JsonObject;
  readonly receivedMs: number;
  readonly position: string | null;
}

export interface Round {
  readPacket(objectId: string, arrived: ArrivedPacket): Promise<void>;
  /** Time alone passes up to an instant of the service's clock. */
  tick(objectId: string, untilMs: number): Promise<void>;
  forgetAlarm(objectId: string, ruleId: string, alarmId: string): Promise<void>;
  changeObject(objectId: string): Promise<void>;
  /** False where it has more objects than are written together: it is to be called again then. */
  changeRule(ruleId: string): Promise<boolean>;
  /** About how many steps it has taken so far. */
  steps(): number;
  /** Throws 503. */
  writes(): Promise<OutputWrite[]>;
  /** What was prepared is committed. */
  keep(): void;
}

interface State extends RoundParts, WritingParts, RoundStates {
  /** In order. What alarms write is known once what they depend on was read. */
  readonly outputs: (OutputWrite | RaisedAlarm)[];
  /** Whether packets were read that may come again. */
  hasRefilled: boolean;
  /** Rules whose expressions have taken too many steps, which they do not show yet. */
  readonly exhausted: Set<ActiveRule>;
  steps: number;
  /** Many rules of one object must not hold the process up. */
  readonly turn: TurnClock;
}

export function createRound(parts: RoundParts, partition: number, held: PartitionMemory): Round {
  const state: State = {
    ...parts,
    partition,
    held,
    states: new Map(),
    memories: new Map(),
    gone: new Set(),
    outputs: [],
    hasRefilled: false,
    exhausted: new Set(),
    steps: 0,
    prepared: new Map(),
    turn: startTurnClock(),
  };
  return {
    readPacket: (objectId, arrived) => readOne(state, objectId, arrived),
    tick: (objectId, untilMs) => tick(state, objectId, untilMs),
    forgetAlarm: async (objectId, ruleId, alarmId) => forgetAlarm(state, objectId, ruleId, alarmId),
    changeObject: (objectId) => changeObject(state, objectId),
    changeRule: (ruleId) => changeRule(state, ruleId),
    steps: () => state.steps,
    writes: () => collectWrites(state),
    keep() {
      keepStates(state);
      for (const { seen } of state.exhausted) seen.isExhausted = true;
    },
  };
}

const isRaised = (output: OutputWrite | RaisedAlarm): output is RaisedAlarm => 'raise' in output;

async function collectWrites(state: State): Promise<OutputWrite[]> {
  const states = [...stateWrites(state), ...refillWrites(state), ...exhaustedWrites(state)];
  const raised = await raiseAlarms(state, state.outputs.filter(isRaised));
  const outputs = state.outputs.flatMap((output) => (isRaised(output) ? (raised.get(output) ?? []) : [output]));
  return [...outputs, ...states];
}

const refillWrites = ({ hasRefilled, partition, held }: State): OutputWrite[] =>
  hasRefilled ? [{ collection: ALARM_STATES, operations: [toRefilledWrite(partition, held.refilledToMs)] }] : [];

const TOO_MANY_STEPS = 'its expressions have taken too many steps for a packet, and had no result';

const exhaustedWrites = ({ exhausted }: State): OutputWrite[] =>
  [...exhausted].flatMap(({ id }) => showRefused(id, TOO_MANY_STEPS));

async function memoryOf(state: State, object: RuleObject, { packet, position }: ArrivedPacket): Promise<ObjectMemory> {
  const own = state.memories.get(object.id);
  if (own !== undefined) return own;
  const known = state.held.objects.get(object.id);
  const { readsLast } = object.set;
  const isComplete = known?.isPartial === false && (known.last !== null || !readsLast);
  const memory = isComplete
    ? { ...known, last: known.last === null ? null : { ...known.last } }
    : await lookBack(state, object.id, { readsLast, place: { stampUs: Number(packet._ts), position } });
  state.memories.set(object.id, memory);
  return memory;
}

/** Whether a packet that a refill may have read was evaluated before. */
function wasEvaluatedBefore({ memories, held }: State, objectId: string, packet: JsonObject): boolean {
  const evaluated = memories.get(objectId) ?? held.objects.get(objectId) ?? held.evaluated.get(objectId);
  return evaluated !== undefined && wasEvaluated(evaluated, packet);
}

/** After all packets that there are. */
const EVERYTHING: StoredPlace = { stampUs: Number.MAX_SAFE_INTEGER, position: null };

/** What the packets say that were stored before a place. */
async function lookBack(
  { database, held }: State,
  objectId: string,
  { readsLast, place }: { readsLast: boolean; place: StoredPlace },
): Promise<ObjectMemory> {
  const memory = newMemory(readsLast);
  const found = await collectBefore(database, { objectId, place, limit: LIMITS.alarmLookBackPackets });
  for (const bson of found.reverse()) {
    const packet = JSON.parse(toJson(bson).toString()) as JsonObject;
    remember(memory, readPacket(memory, packet, {}), receivedMsOf(packet));
  }
  for (const evaluated of [held.evaluated.get(objectId), held.objects.get(objectId)]) advanceTo(memory, evaluated);
  memory.isPartial = false;
  return memory;
}

function concernedBy({ states, held }: State, object: RuleObject, packet: JsonObject): Iterable<ActiveRule> {
  // States of this round may be others than those that are held.
  if (states.has(object.id)) return object.set.rules;
  return object.set.concernedBy(packet, held.states.get(object.id));
}

async function readOne(state: State, objectId: string, arrived: ArrivedPacket): Promise<void> {
  const { packet, receivedMs } = arrived;
  const object = await state.objects.find(objectId);
  if (object === null) return;
  if (receivedMs <= state.held.refilledToMs) {
    state.hasRefilled = true;
    if (wasEvaluatedBefore(state, objectId, packet)) return;
  }
  const memory = await memoryOf(state, object, arrived);
  if (memory.packetId === packet._id) return;
  const read = readPacket(memory, packet, object.object);
  for (const rule of concernedBy(state, object, packet)) {
    const before = currentState(state, objectId, rule);
    const steps = new Steps(object.set.stepsOfRule);
    const { after, effects } = evaluatePacket({ rule, object, memory }, before, { read, packet, receivedMs, steps });
    noteSteps(state, rule, { steps, cost: rule.compiled.costOf(read) });
    const isActing = receivedMs - (packet.time as number) <= rule.compiled.settings.controlMs;
    for (const caused of effects) apply(state, { rule, object }, caused, isActing);
    storeState(state, objectId, rule, { state: after, effects, isActing });
    await state.turn.yieldIfLong();
  }
  remember(memory, read, receivedMs);
}

function noteSteps(state: State, rule: ActiveRule, { steps, cost }: { steps: Steps; cost: number }): void {
  state.steps += steps.taken + cost * LIMITS.conditionSteps;
  if (steps.taken > LIMITS.plannedSteps) rule.seen.isDear = true;
  if (steps.areSpent && !rule.seen.isExhausted) state.exhausted.add(rule);
}

function apply(
  state: State,
  { rule, object }: Pick<Evaluated, 'rule' | 'object'>,
  { effect, packetId, position }: CausedEffect,
  isActing: boolean,
): void {
  if (effect.kind === 'clear') {
    state.outputs.push(...toClearing(effect.alarmId, effect.atMs, 'condition', state.now()));
    return;
  }
  state.outputs.push({ rule, object, raise: effect, packetId, position, isActing });
}

async function tick(state: State, objectId: string, untilMs: number): Promise<void> {
  const object = await state.objects.find(objectId);
  if (object === null) return;
  const known = state.memories.get(objectId) ?? state.held.objects.get(objectId);
  // What is stored may be ahead of what was evaluated: it only says whether the object was heard.
  const memory = known ?? (await lookBack(state, objectId, { readsLast: false, place: EVERYTHING }));
  const unread = new Set(rulesWithState(state, objectId));
  for (const rule of object.set.rules) {
    const present = stateOf(state, objectId, rule.id);
    if (present === undefined || present.key !== rule.key) continue;
    unread.delete(rule.id);
    await passTime(state, { rule, object, memory }, heardSince(present.state, memory), untilMs);
    await escalate(state, { rule, object });
  }
  // Of rules that have changed: unless their states end, or begin anew, their time comes too.
  if (unread.size > 0) schedule(state.held, objectId, untilMs + LIMITS.partitionTickMs);
}

async function passTime(state: State, evaluated: Evaluated, before: RuleState, untilMs: number): Promise<void> {
  const { rule, object, memory } = evaluated;
  const dueMs = changesAt(rule, before, memory);
  if (dueMs === null) return;
  if (dueMs > untilMs) return schedule(state.held, object.id, dueMs);
  const input: Input = { kind: 'tick', atMs: untilMs - memory.aheadMs };
  const { state: after, effects } = step(partsOf(evaluated), before, input);
  const isActing = memory.aheadMs <= rule.compiled.settings.controlMs;
  const caused = causedBy(memory, effects);
  for (const one of caused) apply(state, evaluated, one, isActing);
  storeState(state, object.id, rule, { state: after, effects: caused, isActing });
}

/** Carries out the steps that have come, if the alarm is still raised and nobody has acknowledged it. */
async function escalate(state: State, { rule, object }: Pick<Evaluated, 'rule' | 'object'>): Promise<void> {
  const held = stateOf(state, object.id, rule.id);
  const alarmId = held?.state.alarmId ?? null;
  if (held === undefined || held.waiting === null || alarmId === null) return;
  const { due, later } = splitWaiting(held.waiting, state.now());
  for (const { dueMs } of later ?? []) schedule(state.held, object.id, dueMs);
  if (due.length === 0) return;
  const isWanted = await isUnacknowledged(state.database, alarmId);
  if (isWanted) state.outputs.push(...(await escalateAlarm(state, { rule, object }, { alarmId, steps: due })));
  putState(state, object.id, rule.id, { ...held, waiting: isWanted ? later : null });
}

/** What is known of when the object was heard last. It was not silent for a rule that did not yet run. */
function heardSince(state: RuleState, { dataMs, aheadMs }: ObjectMemory): RuleState {
  const { heardMs, startedMs } = state;
  const heardAtMs = heardMs ?? (startedMs === null ? null : startedMs - aheadMs);
  if (heardAtMs === null || dataMs === -Infinity || (heardMs !== null && dataMs <= heardMs)) return state;
  return { ...state, heardMs: Math.max(heardAtMs, dataMs) };
}

function forgetAlarm(state: State, objectId: string, ruleId: string, alarmId: string): void {
  state.outputs.push(tellCleared(alarmId, state.now()));
  const held = stateOf(state, objectId, ruleId);
  if (held === undefined) return;
  const next = afterClearing(held.state, alarmId);
  const rule = state.registry.find(ruleId);
  if (rule !== undefined) storeState(state, objectId, rule, { state: next, ...WITHOUT_EFFECTS });
  else putState(state, objectId, ruleId, null);
}

/** Ends the state of a rule, and clears its alarm. */
function end(state: State, objectId: string, ruleId: string, reason: ClearReason): void {
  const held = stateOf(state, objectId, ruleId);
  if (held === undefined) return;
  const { alarmId } = held.state;
  if (alarmId !== null) state.outputs.push(...toClearing(alarmId, state.now(), reason, state.now()));
  putState(state, objectId, ruleId, null);
}

/** What packets before have made of it in this round would come back otherwise. */
function forget({ gone, memories }: State, objectId: string): void {
  memories.delete(objectId);
  gone.add(objectId);
}

async function changeObject(state: State, objectId: string): Promise<void> {
  const object = await state.objects.find(objectId);
  const ids = rulesWithState(state, objectId);
  const isRaised = ids.some((ruleId) => (stateOf(state, objectId, ruleId)?.state.alarmId ?? null) !== null);
  if (object !== null && isRaised) state.outputs.push(toFollowing(object));
  if (object === null) forget(state, objectId);
  for (const ruleId of ids) {
    if (object === null) end(state, objectId, ruleId, 'object removed');
    else if (state.registry.find(ruleId) === undefined) end(state, objectId, ruleId, await findReason(state, ruleId));
    else if (!object.set.rules.some(({ id }) => id === ruleId)) end(state, objectId, ruleId, 'object not selected');
  }
  for (const rule of object?.set.rules ?? []) {
    const held = stateOf(state, objectId, rule.id);
    if (held !== undefined && held.key !== rule.key) renewState(state, objectId, rule);
    if (object !== null) startSilence(state, object, rule);
  }
}

/** Whether nothing leads to the end of silence yet. */
function isUnstarted(state: State, objectId: string, rule: ActiveRule): boolean {
  const held = stateOf(state, objectId, rule.id)?.state;
  return rule.compiled.silentMs !== null && (held === undefined || (held.heardMs ?? held.startedMs) === null);
}

/** Silence counts from the last packet; of an object that sent none, from when it or the rule began, whichever is later. */
function startSilence(state: State, { id, createdMs }: RuleObject, rule: ActiveRule): void {
  if (!isUnstarted(state, id, rule)) return;
  const started = { ...currentState(state, id, rule), startedMs: Math.max(createdMs, rule.stored.revision) };
  const memory = state.memories.get(id) ?? state.held.objects.get(id);
  const next = memory === undefined ? started : heardSince(started, memory);
  storeState(state, id, rule, { state: next, ...WITHOUT_EFFECTS });
}

/** A rule that has changed is one task of each partition: its objects count as tasks, so that one transaction has about as many as of others. */
const STEPS_OF_CHANGE = LIMITS.commitTenantSteps / LIMITS.commitTasks;

async function changeRule(state: State, ruleId: string): Promise<boolean> {
  const { held, objects } = state;
  const rule = state.registry.find(ruleId);
  const reason = rule === undefined ? await findReason(state, ruleId) : null;
  const objectIds = objectsWithState(held, ruleId);
  if (rule !== undefined) await objects.read(objectIds);
  let changed = 0;
  for (const objectId of objectIds) {
    if (changed >= LIMITS.commitTasks) return false;
    await state.turn.yieldIfLong();
    const before = stateOf(state, objectId, ruleId);
    if (before === undefined) continue;
    const object = rule === undefined ? null : await objects.find(objectId);
    const isSelected = rule !== undefined && object?.set.has(rule) === true;
    if (isSelected && before.key === rule.key) continue;
    changed++;
    state.steps += STEPS_OF_CHANGE;
    if (rule === undefined || object === null) end(state, objectId, ruleId, reason ?? 'object removed');
    else if (isSelected) renewState(state, objectId, rule);
    else end(state, objectId, ruleId, 'object not selected');
  }
  return rule === undefined || rule.compiled.silentMs === null || startSilences(state, rule, changed);
}

async function findReason({ database }: State, ruleId: string): Promise<ClearReason> {
  const stored = await loadRule(database, ruleId);
  if (stored === null) return 'rule removed';
  return stored.fields.active === false ? 'rule inactive' : 'rights';
}

/** Objects that are silent from the beginning send nothing that would start their state. */
async function startSilences(state: State, rule: ActiveRule, changed: number): Promise<boolean> {
  let started = changed;
  for (const id of await findSelected(state, rule)) {
    if (partitionOf(id, LIMITS.partitions) !== state.partition || !isUnstarted(state, id, rule)) continue;
    if (started++ >= LIMITS.commitTasks) return false;
    state.steps += STEPS_OF_CHANGE;
    const object = await state.objects.find(id);
    if (object !== null) startSilence(state, object, rule);
  }
  return true;
}
