/**
 * Alarms as a user of the engine. A packet that changes no state becomes no task: it is evaluated when it is planned, and only
 * remembered. Everything else is evaluated when it is prepared, in order, and committed with the partition's position.
 */
import type { ObjectId } from 'mongodb';
import type { Change } from '../core/change.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import {
  type IsWanted,
  NO_TASKS,
  type Outputs,
  type OwnedPartition,
  type Processor,
  partitionOf,
  type Task,
} from '../processing/processor.js';
import { readStoredPackets } from '../webhooks/past-packets.js';
import { isQuiet } from './evaluate.js';
import { isDefault, isOtherState } from './machine.js';
import { newMemory, readPacket, remember } from './packet-reader.js';
import { type PartitionMemory, schedule, setState, takeDue } from './partition-memory.js';
import { createRound, dueOf, evaluatePacket, type RoundParts } from './round.js';
import type { RuleObject } from './rule-objects.js';

/** All tasks of a partition are done in order: those of a rule may change states of any tenant. */
const TENANT = 'alarms';

export type Work =
  | { readonly kind: 'packet'; readonly packet: JsonObject; readonly receivedMs: number }
  | { readonly kind: 'tick' }
  | { readonly kind: 'cleared'; readonly ruleId: string; readonly alarmId: string }
  | { readonly kind: 'object' }
  | { readonly kind: 'rule'; readonly ruleId: string };

export interface AlarmTask extends Task {
  /** Null for work on a whole partition. */
  readonly objectId: string | null;
  readonly work: Work;
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
    prepare: (owned, tasks) => prepare(options, owned, tasks),
    describe: ({ objectId, work }) => ({ object: objectId, work: work.kind }),
    acquire: options.acquire,
    leave: async ({ index }) => void options.memories.delete(index),
    refill: (partitions, interval) => refill(options, partitions, interval),
  };
}

function plan(options: AlarmProcessorOptions, change: Change, isWanted: IsWanted): Planned {
  const { store, kind, objectId } = change;
  if (store === 'packets') return objectId === null ? NO_TASKS : planPacket(options, change, isWanted);
  if (store === 'alarms') return planCleared(options, change, isWanted);
  if (store === 'objects') return planObject(options, change, isWanted);
  const ruleIds = options.registry.affectedBy(change);
  if (ruleIds.length === 0 || (store === 'rules' && kind === 'changed' && isOwnChange(change))) return NO_TASKS;
  const partitions = Array.from({ length: LIMITS.partitions }, (_, index) => index).filter((one) =>
    isWanted(one, TENANT),
  );
  return ruleIds.flatMap((ruleId) =>
    partitions.map((partition) => toTask(partition, change, null, { kind: 'rule', ruleId })),
  );
}

const isOwnChange = ({ changed }: Change): boolean => changed?.every((name) => name === 'disabledReason') === true;

const toTask = (
  partition: number,
  { position, bytes }: Pick<Change, 'position' | 'bytes'>,
  objectId: string | null,
  work: Work,
): AlarmTask => ({ partition, tenant: TENANT, position, bytes, objectId, work });

function planPacket(options: AlarmProcessorOptions, change: Change, isWanted: IsWanted): Planned {
  const objectId = change.objectId as string;
  if (options.registry.isEmpty() || !options.registry.mayMatch(objectId)) return NO_TASKS;
  const partition = partitionOf(objectId, LIMITS.partitions);
  if (!isWanted(partition, TENANT)) return NO_TASKS;
  const object = options.objects.find(objectId);
  if (object instanceof Promise) return object.then((found) => planFor(options, change, partition, found));
  return planFor(options, change, partition, object);
}

function planFor(
  options: AlarmProcessorOptions,
  change: Change,
  partition: number,
  object: RuleObject | null,
): readonly AlarmTask[] {
  if (object === null || object.rules.length === 0) return NO_TASKS;
  const packet = change.after as JsonObject;
  const receivedMs = Number(packet._ts) / 1_000;
  const memory = options.memories.get(partition);
  const isCheap = object.cost <= LIMITS.plannedConditions && memory?.waiting.has(object.id) === false;
  if (isCheap && memory.isLoaded && isUneventful(memory, object, packet)) return NO_TASKS;
  memory?.waiting.set(object.id, change.position);
  return [toTask(partition, change, object.id, { kind: 'packet', packet, receivedMs })];
}

/** Whether a packet changes no state, as far as another instance would have to know: then it is remembered, and done. */
function isUneventful(memory: PartitionMemory, object: RuleObject, packet: JsonObject): boolean {
  const receivedMs = Number(packet._ts) / 1_000;
  const isLate = receivedMs - Number(packet.time) > LIMITS.alarmLookBackMs;
  const known = memory.objects.get(object.id);
  const needsPast = isLate || object.rules.some(({ compiled }) => compiled.readsLast || compiled.readsFix);
  if (known === undefined && needsPast) return false;
  const readsLast = object.rules.some(({ compiled }) => compiled.readsLast);
  const ofObject = known ?? newMemory(readsLast);
  if (readsLast && ofObject.last === null) return false;
  if (ofObject.packetId === packet._id) return true;
  const read = readPacket(ofObject, packet, object.object);
  const states = memory.states.get(object.id);
  const changed: (() => void)[] = [];
  for (const rule of object.rules) {
    const held = states?.get(rule.id);
    if (held === undefined && read !== null && isQuiet(rule.compiled, read)) continue;
    if (held !== undefined && held.key !== rule.key) return false;
    const { before, after, effects } = evaluatePacket({ rule, object, memory: ofObject }, held?.state, {
      read,
      packet,
      receivedMs,
    });
    if (effects.length > 0 || isOtherState(rule.compiled, before, after)) return false;
    if (before === after) continue;
    const next = isDefault(rule.compiled, after) ? null : { key: rule.key, state: after };
    changed.push(() => setState(memory, object.id, rule.id, next));
  }
  for (const change of changed) change();
  if (read !== null) remember(ofObject, read, receivedMs);
  if (known === undefined) memory.objects.set(object.id, ofObject);
  return true;
}

function planCleared({ memories }: AlarmProcessorOptions, change: Change, isWanted: IsWanted): readonly AlarmTask[] {
  const { after, changed, objectId } = change;
  const isByHand = after?.clearReason === 'user' && changed?.includes('status') === true;
  if (!isByHand || objectId === null) return NO_TASKS;
  const partition = partitionOf(objectId, LIMITS.partitions);
  if (!isWanted(partition, TENANT)) return NO_TASKS;
  // Packets that come after it wait for it.
  memories.get(partition)?.waiting.set(objectId, change.position);
  const work: Work = { kind: 'cleared', ruleId: String(after?.rule), alarmId: change.id };
  return [toTask(partition, change, objectId, work)];
}

function planObject(
  { registry, memories }: AlarmProcessorOptions,
  change: Change,
  isWanted: IsWanted,
): readonly AlarmTask[] {
  const partition = partitionOf(change.id, LIMITS.partitions);
  if (!isWanted(partition, TENANT)) return NO_TASKS;
  const memory = memories.get(partition);
  const hasStates =
    memory === undefined || !memory.isLoaded || memory.states.has(change.id) || memory.waiting.has(change.id);
  const mayStart = [...registry.all()].some(({ compiled }) => compiled.silentMs !== null);
  if (!hasStates && !mayStart) return NO_TASKS;
  memory?.waiting.set(change.id, change.position);
  return [toTask(partition, change, change.id, { kind: 'object' })];
}

async function prepare(
  options: AlarmProcessorOptions,
  owned: OwnedPartition,
  tasks: readonly AlarmTask[],
): Promise<Outputs> {
  const memory = await options.loaded(owned);
  const round = createRound(options, owned.index, memory);
  for (const { objectId, work } of tasks) {
    if (work.kind === 'rule') await round.changeRule(work.ruleId);
    else if (objectId === null) continue;
    else if (work.kind === 'packet') await round.readPacket(objectId, work.packet, work.receivedMs);
    else if (work.kind === 'tick') await round.tick(objectId);
    else if (work.kind === 'cleared') await round.forgetAlarm(objectId, work.ruleId, work.alarmId);
    else await round.changeObject(objectId);
  }
  const committed = (): void => {
    round.keep();
    for (const { objectId, position } of tasks) {
      if (objectId !== null && memory.waiting.get(objectId) === position) memory.waiting.delete(objectId);
    }
  };
  return { writes: round.writes(), committed };
}

/** The tasks of a partition whose instants have come. */
export function takeTicks(memory: PartitionMemory, partition: number, nowMs: number): AlarmTask[] {
  return takeDue(memory, nowMs).map((objectId) => ({
    partition,
    tenant: TENANT,
    position: null,
    bytes: 200,
    objectId,
    work: { kind: 'tick' },
  }));
}

/** Schedules the states of a partition that was loaded. */
export function scheduleAll(parts: RoundParts, memory: PartitionMemory): void {
  for (const [objectId, states] of memory.states) {
    for (const [ruleId, { state }] of states) {
      const rule = parts.registry.find(ruleId);
      const dueMs = rule === undefined ? null : dueOf(rule, state, memory.objects.get(objectId));
      if (dueMs !== null) schedule(memory, objectId, dueMs);
    }
  }
}

/** The packets that were stored since, object by object. */
async function* refill(
  { registry, database, objects }: AlarmProcessorOptions,
  partitions: readonly number[],
  interval: { fromMs: number; toMs: number },
): AsyncGenerator<readonly AlarmTask[]> {
  if (registry.isEmpty()) return;
  const wanted = new Set(partitions);
  const cursor = database.db.collection('objects').find({}, { sort: { _id: 1 }, batchSize: LIMITS.pastObjectsBatch });
  for await (const found of cursor) {
    const id = (found._id as ObjectId).toHexString();
    const partition = partitionOf(id, LIMITS.partitions);
    if (!wanted.has(partition) || objects.toObject(found).rules.length === 0) continue;
    for await (const packets of readStoredPackets(database, [id], interval)) {
      yield packets.map(({ json, stampUs }) => {
        const packet = JSON.parse(json.toString()) as JsonObject;
        const work: Work = { kind: 'packet', packet, receivedMs: stampUs / 1_000 };
        return { partition, tenant: TENANT, position: null, bytes: json.length, objectId: id, work };
      });
    }
  }
}
