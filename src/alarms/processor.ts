/**
 * Alarms as a user of the engine. A packet that changes no state becomes no task: it is evaluated when it is planned, and only
 * remembered. Everything else is evaluated when it is prepared, in order, and committed with the partition's position.
 */
import type { Change } from '../core/change.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { Steps } from '../core/rule/metering.js';
import {
  type IsWanted,
  NO_TASKS,
  type Outputs,
  type OwnedPartition,
  type Processor,
  partitionOf,
  type RefilledInterval,
  type Task,
  type Turn,
} from '../processing/processor.js';
import { readStoredPackets } from '../webhooks/past-packets.js';
import { isQuiet } from './evaluate.js';
import { evaluatePacket } from './evaluate-packet.js';
import { isDefault, isOtherState } from './machine.js';
import { newMemory, readPacket, receivedMsOf, remember } from './packet-reader.js';
import { type PartitionMemory, schedule, setState } from './partition-memory.js';
import { createRound, type RoundParts } from './round.js';
import { dueOf } from './round-states.js';
import type { RuleObject } from './rule-objects.js';
import { tenantOf } from './rule-store.js';

/** What belongs to no object that is known. */
const NO_TENANT = '';

export type Work =
  | { readonly kind: 'packet'; readonly packet: JsonObject; readonly receivedMs: number }
  /** By the service's clock: time alone passes up to then. */
  | { readonly kind: 'tick'; readonly untilMs: number }
  | { readonly kind: 'cleared'; readonly ruleId: string; readonly alarmId: string }
  | { readonly kind: 'object' }
  | { readonly kind: 'rule'; readonly ruleId: string };

export interface AlarmTask extends Task {
  /** Null for work on a whole partition. */
  readonly objectId: string | null;
  readonly work: Work;
}

export interface ObjectTask extends AlarmTask {
  readonly objectId: string;
}

export interface AlarmProcessorOptions extends RoundParts {
  readonly memories: Map<number, PartitionMemory>;
  readonly acquire: (owned: OwnedPartition) => void;
  /** Resolves when what is stored of a partition was read. */
  readonly loaded: (owned: OwnedPartition) => Promise<PartitionMemory>;
}

type Planned = readonly AlarmTask[] | Promise<readonly AlarmTask[]>;

export function createAlarmProcessor(options: AlarmProcessorOptions): Processor<AlarmTask> {
  return {
    name: 'alarms',
    plan: (change, isWanted) => plan(options, change, isWanted),
    prepare: (owned, tasks, _nextNumber, turn) => prepare(options, owned, { tasks, turn }),
    describe: ({ objectId, work }) => ({ object: objectId, work: work.kind }),
    acquire: options.acquire,
    leave: async ({ index }) => void options.memories.delete(index),
    refill: (partitions, interval) => refill(options, partitions, interval),
  };
}

function plan(options: AlarmProcessorOptions, change: Change, isWanted: IsWanted): Planned {
  const { store, objectId } = change;
  if (store === 'packets') return objectId === null ? NO_TASKS : planPacket(options, change, isWanted);
  if (store === 'alarms') return planCleared(options, change, isWanted);
  if (store === 'objects') return planObject(options, change, isWanted);
  return NO_TASKS;
}

const toTask = (
  partition: number,
  { position, bytes }: Pick<Change, 'position' | 'bytes'>,
  object: Pick<RuleObject, 'id' | 'tenant'>,
  work: Work,
): ObjectTask => ({ partition, tenant: object.tenant, position, bytes, objectId: object.id, work });

/** Packets of the object that come after it wait for it. */
function markWaiting(memory: PartitionMemory | undefined, task: ObjectTask): ObjectTask {
  memory?.waiting.set(task.objectId, task);
  return task;
}

function planPacket(options: AlarmProcessorOptions, change: Change, isWanted: IsWanted): Planned {
  const objectId = change.objectId as string;
  if (options.registry.isEmpty() || !options.registry.mayMatch(objectId)) return NO_TASKS;
  return withObject(options, objectId, (partition, object) =>
    object !== null && isWanted(partition, object.tenant) ? planFor(options, change, partition, object) : NO_TASKS,
  );
}

/** Plans what belongs to an object of a partition that this instance owns. */
function withObject(
  { memories, objects }: AlarmProcessorOptions,
  objectId: string,
  planWith: (partition: number, object: RuleObject | null) => readonly AlarmTask[],
): Planned {
  const partition = partitionOf(objectId, LIMITS.partitions);
  if (!memories.has(partition)) return NO_TASKS;
  const object = objects.find(objectId);
  if (object instanceof Promise) return object.then((found) => planWith(partition, found));
  return planWith(partition, object);
}

function planFor(
  { registry, memories }: AlarmProcessorOptions,
  change: Change,
  partition: number,
  object: RuleObject,
): readonly AlarmTask[] {
  // Its rules are those of now when it is prepared.
  const isPending = registry.isPending(object.audience);
  if (object.set.rules.length === 0 && !isPending) return NO_TASKS;
  const packet = change.after as JsonObject;
  const memory = memories.get(partition);
  const receivedMs = receivedMsOf(packet);
  const mayBeDone = !isPending && memory?.isLoaded === true && !memory.waiting.has(object.id);
  if (mayBeDone && receivedMs > memory.refilledToMs && isUneventful(memory, object, packet)) return NO_TASKS;
  const work: Work = { kind: 'packet', packet, receivedMs };
  return [markWaiting(memory, toTask(partition, change, object, work))];
}

/** Whether a packet changes no state, as far as another instance would have to know: then it is remembered, and done. */
function isUneventful(memory: PartitionMemory, object: RuleObject, packet: JsonObject): boolean {
  const receivedMs = receivedMsOf(packet);
  const isLate = receivedMs - Number(packet.time) > LIMITS.alarmLookBackMs;
  const known = memory.objects.get(object.id);
  const { readsLast, readsFix } = object.set;
  const ofObject = known ?? newMemory(readsLast, memory.evaluated.get(object.id));
  if (ofObject.isPartial && (isLate || readsLast || readsFix)) return false;
  if (readsLast && ofObject.last === null) return false;
  if (ofObject.packetId === packet._id) return true;
  const read = readPacket(ofObject, packet, object.object);
  const states = memory.states.get(object.id);
  const changed: (() => void)[] = [];
  let cost: number = 0;
  // A task gives each rule its own.
  const steps = new Steps(LIMITS.plannedSteps);
  for (const rule of object.set.concernedBy(packet, states)) {
    cost += rule.compiled.costOf(read);
    if (cost > LIMITS.plannedConditions || rule.seen.isDear) return false;
    const held = states?.get(rule.id);
    const isIdle = held === undefined && read !== null && isQuiet(rule.compiled, read, steps);
    if (steps.areSpent) return false;
    if (isIdle) continue;
    if (held !== undefined && held.key !== rule.key) return false;
    const { before, after, effects } = evaluatePacket({ rule, object, memory: ofObject }, held?.state, {
      read,
      packet,
      receivedMs,
      steps,
    });
    if (steps.areSpent) return false;
    if (effects.length > 0 || isOtherState(rule.compiled, before, after)) return false;
    if (before === after) continue;
    const waiting = held?.waiting ?? null;
    const next = isDefault(rule.compiled, after) ? null : { key: rule.key, state: after, waiting };
    changed.push(() => setState(memory, object.id, rule.id, next));
  }
  for (const change of changed) change();
  remember(ofObject, read, receivedMs);
  if (known === undefined) memory.objects.set(object.id, ofObject);
  return true;
}

function planCleared(options: AlarmProcessorOptions, change: Change, isWanted: IsWanted): Planned {
  const { after, changed, objectId } = change;
  const isByHand = after?.clearReason === 'user' && changed?.includes('status') === true;
  if (!isByHand || objectId === null) return NO_TASKS;
  const work: Work = { kind: 'cleared', ruleId: String(after?.rule), alarmId: change.id };
  return withObject(options, objectId, (partition, object) => {
    const { tenant } = object ?? { tenant: NO_TENANT };
    if (!isWanted(partition, tenant)) return NO_TASKS;
    return [markWaiting(options.memories.get(partition), toTask(partition, change, { id: objectId, tenant }, work))];
  });
}

function planObject(
  { registry, memories }: AlarmProcessorOptions,
  change: Change,
  isWanted: IsWanted,
): readonly AlarmTask[] {
  const { id, accessFields, accessFieldsBefore } = change;
  const partition = partitionOf(id, LIMITS.partitions);
  const fields = accessFields ?? accessFieldsBefore;
  const tenant = fields === null ? NO_TENANT : tenantOf(fields);
  if (!isWanted(partition, tenant)) return NO_TASKS;
  const memory = memories.get(partition);
  const hasStates = memory === undefined || !memory.isLoaded || memory.states.has(id) || memory.waiting.has(id);
  const isForgotten = change.kind === 'removed' && (memory?.objects.has(id) || memory?.evaluated.has(id));
  if (!hasStates && !isForgotten && !registry.hasSilent()) return NO_TASKS;
  return [markWaiting(memory, toTask(partition, change, { id, tenant }, { kind: 'object' }))];
}

async function prepare(
  options: AlarmProcessorOptions,
  owned: OwnedPartition,
  { tasks, turn }: { tasks: readonly AlarmTask[]; turn: Turn },
): Promise<Outputs> {
  const memory = await options.loaded(owned);
  await waitForRules(options, tasks);
  const round = createRound(options, owned.index, memory);
  const unfinished: AlarmTask[] = [];
  const done: AlarmTask[] = [];
  for (const task of tasks) {
    const { objectId, work, tenant } = task;
    if (turn.isOver(tenant)) continue;
    done.push(task);
    const before = round.steps();
    if (work.kind === 'rule') {
      if (!(await round.changeRule(work.ruleId))) unfinished.push(task);
    } else if (objectId === null) continue;
    else if (work.kind === 'packet') await round.readPacket(objectId, { ...work, position: task.position });
    else if (work.kind === 'tick') await round.tick(objectId, work.untilMs);
    else if (work.kind === 'cleared') await round.forgetAlarm(objectId, work.ruleId, work.alarmId);
    else await round.changeObject(objectId);
    turn.spend(tenant, round.steps() - before);
  }
  const writes = await round.writes();
  const committed = (): void => {
    round.keep();
    for (const task of done) {
      const { objectId } = task;
      if (objectId !== null && memory.waiting.get(objectId) === task) memory.waiting.delete(objectId);
    }
    for (const { work, tenant } of unfinished) {
      if (work.kind === 'rule') memory.changedRules.set(work.ruleId, tenant);
    }
  };
  const isDone = new Set(done);
  return { writes, committed, left: tasks.filter((task) => !isDone.has(task)) };
}

/** Reads the objects of tasks, and waits for rules that had changed by now and may select them. Throws 503. */
async function waitForRules({ registry, objects }: AlarmProcessorOptions, tasks: readonly AlarmTask[]): Promise<void> {
  await objects.read(tasks.flatMap(({ objectId }) => objectId ?? []));
  for (const { objectId, work } of tasks) {
    if (work.kind === 'rule') await registry.currentRule(work.ruleId);
    const object = objectId === null ? null : await objects.find(objectId);
    if (object !== null && registry.isPending(object.audience)) await registry.current(object.audience);
  }
}

/** Tasks of time for objects, by tenant. */
export function toTicks(
  partition: number,
  objectIds: readonly string[],
  { untilMs, tenantFor }: { untilMs: number; tenantFor: (objectId: string) => string | null },
): Iterable<readonly ObjectTask[]> {
  const byTenant = new Map<string, ObjectTask[]>();
  for (const objectId of objectIds) {
    const task = toOwnTask(partition, tenantFor(objectId) ?? NO_TENANT, objectId, { kind: 'tick', untilMs });
    const same = byTenant.get(task.tenant);
    if (same === undefined) byTenant.set(task.tenant, [task]);
    else same.push(task);
  }
  return byTenant.values();
}

/** A task that follows from no change. */
export const toOwnTask = <Id extends string | null>(partition: number, tenant: string, objectId: Id, work: Work) => ({
  partition,
  tenant,
  position: null,
  bytes: 200,
  objectId,
  work,
});

/** Schedules the states of a partition that was loaded. */
export function scheduleAll(parts: RoundParts, memory: PartitionMemory): void {
  for (const [objectId, states] of memory.states) {
    for (const [ruleId, held] of states) {
      const rule = parts.registry.find(ruleId);
      const dueMs = rule === undefined ? null : dueOf(rule, held, memory.objects.get(objectId));
      if (dueMs !== null) schedule(memory, objectId, dueMs);
    }
  }
}

/** The packets that were stored since, object by object. */
async function* refill(
  { registry, database, objects, memories }: AlarmProcessorOptions,
  partitions: readonly number[],
  interval: RefilledInterval,
): AsyncGenerator<readonly AlarmTask[]> {
  if (registry.isEmpty()) return;
  const wanted = new Set(partitions);
  for await (const matched of objects.match({}, LIMITS.pastObjectsBatch)) {
    for (const { id, tenant, set, audience } of matched) {
      const partition = partitionOf(id, LIMITS.partitions);
      if (!wanted.has(partition) || (set.rules.length === 0 && !registry.isPending(audience))) continue;
      yield* refillOne({ database, memories }, { id, tenant, partition }, interval);
    }
  }
}

async function* refillOne(
  { database, memories }: Pick<AlarmProcessorOptions, 'database' | 'memories'>,
  { id, tenant, partition }: { id: string; tenant: string; partition: number },
  interval: RefilledInterval,
): AsyncGenerator<readonly AlarmTask[]> {
  for await (const packets of readStoredPackets(database, [id], interval)) {
    yield packets.map(({ json, stampUs }) => {
      const packet = JSON.parse(json.toString()) as JsonObject;
      const receivedMs = stampUs / 1_000;
      const work: Work = { kind: 'packet', packet, receivedMs };
      const task = { partition, tenant, position: null, bytes: json.length, objectId: id, work };
      const memory = memories.get(partition);
      if (memory !== undefined) memory.refilledToMs = Math.max(memory.refilledToMs, receivedMs);
      return markWaiting(memory, task);
    });
  }
}
