/** One preparation of tasks: what they make of the states of a partition, and what is to be written. Nothing is kept until it is committed. */
import { type AnyBulkWriteOperation, ObjectId } from 'mongodb';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { startTurnClock, type TurnClock } from '../live/turn-clock.js';
import { PACKETS } from '../packets/packets.js';
import { toJson } from '../platform/mongo/bson/json-writer.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import type { OutputWrite } from '../processing/commit.js';
import { partitionOf } from '../processing/processor.js';
import { toPastId } from '../webhooks/refill.js';
import type { ActiveRule } from './active-rule.js';
import type { ClearReason } from './alarm-store.js';
import { type AlarmParts, raiseAlarm, tellCleared, toClearing, toFollowing } from './alarm-writes.js';
import type { PacketInput } from './evaluate.js';
import {
  afterClearing,
  type Effect,
  initialState,
  isDefault,
  type MachineParts,
  nextDue,
  type RuleState,
  step,
  underOtherConditions,
} from './machine.js';
import { newMemory, type ObjectMemory, readPacket, remember } from './packet-reader.js';
import { type HeldState, type PartitionMemory, schedule, setState } from './partition-memory.js';
import type { RuleObject, RuleObjects } from './rule-objects.js';
import { loadRule } from './rule-store.js';
import { findSelected } from './silent-objects.js';
import { ALARM_STATES, toStateRemoval, toStateWrite } from './states.js';

export interface RoundParts extends AlarmParts {
  readonly objects: RuleObjects;
}

export interface Evaluated {
  readonly rule: ActiveRule;
  readonly object: RuleObject;
  readonly memory: ObjectMemory;
}

interface Arrived {
  /** Null for a data packet that is older than another one. */
  readonly read: PacketInput | null;
  readonly packet: JsonObject;
  readonly receivedMs: number;
}

/** An effect with the packet that completed it. */
interface Caused {
  readonly effect: Effect;
  readonly packetId: string | null;
}

/** The machine of a rule for an object. The `_id` of an alarm follows from what began it. */
const partsOf = ({ rule, object }: Pick<Evaluated, 'rule' | 'object'>): MachineParts => ({
  rule: rule.compiled,
  toAlarmId(begunBy) {
    const secondsS = /^\d{1,13}(\.\d+)?$/.test(begunBy)
      ? Number(begunBy) / 1_000
      : Number.parseInt(begunBy.slice(0, 8), 16);
    return toPastId(Math.max(0, Math.floor(secondsS)), ['alarm', rule.id, object.id, begunBy]);
  },
});

/** What a packet makes of a state. What time alone does before it belongs to the packet before it. */
export function evaluatePacket(
  evaluated: Evaluated,
  held: RuleState | undefined,
  { read, packet, receivedMs }: Arrived,
): { before: RuleState; after: RuleState; effects: readonly Caused[] } {
  const { rule, memory } = evaluated;
  const parts = partsOf(evaluated);
  const before = held ?? initialState(rule.compiled);
  if (read === null) {
    const { state, effects } = step(parts, before, { kind: 'heard', atMs: receivedMs - memory.aheadMs });
    return { before, after: state, effects: effects.map((effect) => ({ effect, packetId: memory.packetId })) };
  }
  const atMs = packet.time as number;
  const packetId = String(packet._id);
  const early =
    before.phase === 'idle' && before.heardMs === null ? null : step(parts, before, { kind: 'tick', atMs: atMs - 0.5 });
  const { state, effects } = step(parts, early?.state ?? before, { kind: 'packet', atMs, packetId, read });
  if (effects.length === 0 && (early === null || early.effects.length === 0))
    return { before, after: state, effects: [] };
  const caused = [
    ...(early?.effects ?? []).map((effect) => ({ effect, packetId: memory.packetId })),
    ...effects.map((effect) => ({ effect, packetId })),
  ];
  return { before, after: state, effects: caused };
}

/** When time alone changes a state, by the service's clock; null where it does not. */
export function dueOf({ compiled }: ActiveRule, state: RuleState, memory: ObjectMemory | undefined): number | null {
  const dueMs = nextDue(compiled, state);
  return dueMs === null ? null : dueMs + (memory?.aheadMs ?? 0);
}

export interface Round {
  readPacket(objectId: string, packet: JsonObject, receivedMs: number): Promise<void>;
  tick(objectId: string): Promise<void>;
  forgetAlarm(objectId: string, ruleId: string, alarmId: string): Promise<void>;
  changeObject(objectId: string): Promise<void>;
  /** False where it has more objects than are written together: it is to be called again then. */
  changeRule(ruleId: string): Promise<boolean>;
  writes(): OutputWrite[];
  /** What was prepared is committed. */
  keep(): void;
}

interface State extends RoundParts {
  readonly partition: number;
  readonly held: PartitionMemory;
  /** By object, then by rule: null for one that ends. */
  readonly states: Map<string, Map<string, HeldState | null>>;
  readonly memories: Map<string, ObjectMemory>;
  readonly outputs: OutputWrite[];
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
    outputs: [],
    turn: startTurnClock(),
  };
  return {
    readPacket: (objectId, packet, receivedMs) => readOne(state, objectId, packet, receivedMs),
    tick: (objectId) => tick(state, objectId),
    forgetAlarm: async (objectId, ruleId, alarmId) => forgetAlarm(state, objectId, ruleId, alarmId),
    changeObject: (objectId) => changeObject(state, objectId),
    changeRule: (ruleId) => changeRule(state, ruleId),
    writes: () => [...state.outputs, ...stateWrites(state)],
    keep: () => keep(state),
  };
}

function stateOf({ states, held }: State, objectId: string, ruleId: string): HeldState | undefined {
  const own = states.get(objectId)?.get(ruleId);
  return own === undefined ? held.states.get(objectId)?.get(ruleId) : (own ?? undefined);
}

function put({ states }: State, objectId: string, ruleId: string, next: HeldState | null): void {
  const ofObject = states.get(objectId) ?? new Map<string, HeldState | null>();
  states.set(objectId, ofObject);
  ofObject.set(ruleId, next);
}

/** The rules that have a state for the object. */
function rulesWithState({ states, held }: State, objectId: string): string[] {
  const ids = new Set([...(held.states.get(objectId)?.keys() ?? []), ...(states.get(objectId)?.keys() ?? [])]);
  return [...ids];
}

/** The state under the conditions of now. */
function currentState(state: State, objectId: string, rule: ActiveRule): RuleState {
  const held = stateOf(state, objectId, rule.id);
  if (held === undefined) return initialState(rule.compiled);
  return held.key === rule.key ? held.state : underOtherConditions(rule.compiled, held.state);
}

function store(state: State, objectId: string, rule: ActiveRule, next: RuleState): void {
  put(state, objectId, rule.id, isDefault(rule.compiled, next) ? null : { key: rule.key, state: next });
}

async function memoryOf(state: State, object: RuleObject, packet: JsonObject): Promise<ObjectMemory> {
  const own = state.memories.get(object.id);
  if (own !== undefined) return own;
  const known = state.held.objects.get(object.id);
  const { readsLast } = object.set;
  const isComplete = known !== undefined && (known.last !== null || !readsLast);
  const memory = isComplete
    ? { ...known, last: known.last === null ? null : { ...known.last } }
    : await lookBack(state, object.id, { readsLast, beforeUs: Number(packet._ts) });
  state.memories.set(object.id, memory);
  return memory;
}

/** What the packets say that were stored before. */
async function lookBack(
  { database }: State,
  objectId: string,
  { readsLast, beforeUs }: { readsLast: boolean; beforeUs: number | null },
): Promise<ObjectMemory> {
  const filter = { _oid: new ObjectId(objectId), ...(beforeUs !== null && { _ts: { $lt: beforeUs } }) };
  const options = { sort: { time: -1, _ts: -1 }, limit: LIMITS.alarmLookBackPackets, raw: true } as const;
  const find = () => database.db.collection(PACKETS).find(filter, options).toArray();
  const found = (await mapDriverErrors(find, LIMITS.databaseOperationMs)) as unknown as Buffer[];
  const memory = newMemory(readsLast);
  for (const bson of found.reverse()) {
    const packet = JSON.parse(toJson(bson).toString()) as JsonObject;
    const read = readPacket(memory, packet, {});
    if (read !== null) remember(memory, read, Number(packet._ts) / 1_000);
  }
  return memory;
}

function concernedBy({ states, held }: State, object: RuleObject, packet: JsonObject): Iterable<ActiveRule> {
  // States of this round may be others than those that are held.
  if (states.has(object.id)) return object.set.rules;
  return object.set.concernedBy(packet, held.states.get(object.id));
}

async function readOne(state: State, objectId: string, packet: JsonObject, receivedMs: number): Promise<void> {
  const object = await state.objects.find(objectId);
  if (object === null) return;
  const memory = await memoryOf(state, object, packet);
  if (memory.packetId === packet._id) return;
  const read = readPacket(memory, packet, object.object);
  for (const rule of concernedBy(state, object, packet)) {
    const before = currentState(state, objectId, rule);
    const arrived = { read, packet, receivedMs };
    const { after, effects } = evaluatePacket({ rule, object, memory }, before, arrived);
    const isActing = receivedMs - (packet.time as number) <= rule.compiled.settings.controlMs;
    for (const caused of effects) await apply(state, { rule, object, memory }, caused, { isActing, read });
    store(state, objectId, rule, after);
    await state.turn.yieldIfLong();
  }
  if (read !== null) remember(memory, read, receivedMs);
}

async function apply(
  state: State,
  { rule, object, memory }: Evaluated,
  { effect, packetId }: Caused,
  { isActing, read }: { isActing: boolean; read: PacketInput | null },
): Promise<void> {
  if (effect.kind === 'clear') {
    state.outputs.push(...toClearing(effect.alarmId, effect.atMs, 'condition', state.now()));
    return;
  }
  const fix = read?.fix ?? null;
  const position = fix === null ? memory.position : { lat: fix.lat, lon: fix.lon };
  const raisedMs = effect.atMs + memory.aheadMs;
  state.outputs.push(
    ...(await raiseAlarm(state, { rule, object, raise: effect, packetId, position, raisedMs, isActing })),
  );
}

async function tick(state: State, objectId: string): Promise<void> {
  const object = await state.objects.find(objectId);
  if (object === null) return;
  const known = state.memories.get(objectId) ?? state.held.objects.get(objectId);
  // What is stored may be ahead of what was evaluated: it only says whether the object was heard.
  const memory = known ?? (await lookBack(state, objectId, { readsLast: false, beforeUs: null }));
  for (const rule of object.set.rules) {
    const present = stateOf(state, objectId, rule.id);
    if (present === undefined || present.key !== rule.key) continue;
    const before = heardSince(present.state, memory);
    const dueMs = dueOf(rule, before, memory);
    if (dueMs === null) continue;
    const nowMs = state.now();
    if (dueMs > nowMs) {
      schedule(state.held, objectId, dueMs);
      continue;
    }
    const { state: after, effects } = step(partsOf({ rule, object }), before, {
      kind: 'tick',
      atMs: nowMs - memory.aheadMs,
    });
    const isActing = memory.aheadMs <= rule.compiled.settings.controlMs;
    const caused = effects.map((effect) => ({ effect, packetId: memory.packetId }));
    for (const one of caused) await apply(state, { rule, object, memory }, one, { isActing, read: null });
    store(state, objectId, rule, after);
  }
}

const heardSince = (state: RuleState, { dataMs }: ObjectMemory): RuleState =>
  state.heardMs === null || dataMs <= state.heardMs ? state : { ...state, heardMs: dataMs };

function forgetAlarm(state: State, objectId: string, ruleId: string, alarmId: string): void {
  state.outputs.push(tellCleared(alarmId, state.now()));
  const held = stateOf(state, objectId, ruleId);
  if (held === undefined) return;
  const next = afterClearing(held.state, alarmId);
  const rule = state.registry.find(ruleId);
  if (rule !== undefined) store(state, objectId, rule, next);
  else put(state, objectId, ruleId, null);
}

/** Ends the state of a rule, and clears its alarm. */
function end(state: State, objectId: string, ruleId: string, reason: ClearReason): void {
  const held = stateOf(state, objectId, ruleId);
  if (held === undefined) return;
  const { alarmId } = held.state;
  if (alarmId !== null) state.outputs.push(...toClearing(alarmId, state.now(), reason, state.now()));
  put(state, objectId, ruleId, null);
}

async function changeObject(state: State, objectId: string): Promise<void> {
  const object = await state.objects.find(objectId);
  const ids = rulesWithState(state, objectId);
  const isRaised = ids.some((ruleId) => (stateOf(state, objectId, ruleId)?.state.alarmId ?? null) !== null);
  if (object !== null && isRaised) state.outputs.push(toFollowing(object));
  for (const ruleId of ids) {
    if (object === null) end(state, objectId, ruleId, 'object removed');
    else if (state.registry.find(ruleId) === undefined) end(state, objectId, ruleId, await findReason(state, ruleId));
    else if (!object.set.rules.some(({ id }) => id === ruleId)) end(state, objectId, ruleId, 'object not selected');
  }
  for (const rule of object?.set.rules ?? []) {
    const held = stateOf(state, objectId, rule.id);
    if (held !== undefined && held.key !== rule.key) store(state, objectId, rule, currentState(state, objectId, rule));
    startSilence(state, objectId, rule);
  }
}

/** Silence counts from here on, where the object was never heard. */
function startSilence(state: State, objectId: string, rule: ActiveRule): void {
  if (rule.compiled.silentMs === null || stateOf(state, objectId, rule.id) !== undefined) return;
  const aheadMs = state.held.objects.get(objectId)?.aheadMs ?? 0;
  store(state, objectId, rule, { ...initialState(rule.compiled), heardMs: state.now() - aheadMs });
}

async function changeRule(state: State, ruleId: string): Promise<boolean> {
  const { held, objects } = state;
  const rule = state.registry.find(ruleId);
  const reason = rule === undefined ? await findReason(state, ruleId) : null;
  const objectIds = [...(held.objectsOf.get(ruleId) ?? [])];
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
    if (rule === undefined || object === null) end(state, objectId, ruleId, reason ?? 'object removed');
    else if (isSelected) store(state, objectId, rule, currentState(state, objectId, rule));
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
    if (partitionOf(id, LIMITS.partitions) !== state.partition || stateOf(state, id, rule.id) !== undefined) continue;
    if (started++ >= LIMITS.commitTasks) return false;
    startSilence(state, id, rule);
  }
  return true;
}

function stateWrites(state: State): OutputWrite[] {
  const operations: AnyBulkWriteOperation[] = [];
  for (const [objectId, states] of state.states) {
    const memory = state.memories.get(objectId) ?? state.held.objects.get(objectId);
    for (const [ruleId, next] of states) {
      const before = state.held.states.get(objectId)?.get(ruleId);
      if (next === null && before === undefined) continue;
      const rule = state.registry.find(ruleId);
      if (next === null || rule === undefined) operations.push(toStateRemoval(ruleId, objectId));
      else if (next.state !== before?.state) {
        const stored = { ruleId, objectId, key: next.key, state: next.state };
        operations.push(toStateWrite(state.partition, stored, dueOf(rule, next.state, memory)));
      }
    }
  }
  return operations.length === 0 ? [] : [{ collection: ALARM_STATES, operations }];
}

function keep(state: State): void {
  const { held } = state;
  for (const [objectId, memory] of state.memories) held.objects.set(objectId, memory);
  for (const [objectId, states] of state.states) {
    for (const [ruleId, next] of states) {
      setState(held, objectId, ruleId, next);
      const rule = next === null ? undefined : state.registry.find(ruleId);
      const dueMs = rule === undefined || next === null ? null : dueOf(rule, next.state, held.objects.get(objectId));
      if (dueMs !== null) schedule(held, objectId, dueMs);
    }
  }
}
