/** Alarms: the rules, their states, and the instants at which time alone changes these. */
import { backoffMs } from '../core/backoff.js';
import type { Change } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import type { ModelFinder } from '../packets/models.js';
import { clock, type Timer } from '../platform/clock.js';
import type { OwnedPartition, Processor } from '../processing/processor.js';
import type { AlarmParts } from './alarm-actions.js';
import {
  countRemembered,
  createPartitionMemory,
  fillMemory,
  type PartitionMemory,
  SLOT_MS,
  schedule,
  takeDue,
} from './partition-memory.js';
import { type AlarmTask, createAlarmProcessor, type ObjectTask, scheduleAll, toOwnTask, toTicks } from './processor.js';
import { findOutdated } from './reconcile.js';
import { createRuleObjects, type RuleObjects } from './rule-objects.js';
import { createRuleRegistry, type RuleRegistry, type RuleRegistryOptions } from './rule-registry.js';
import { readStates } from './states.js';

export interface AlarmsOptions extends RuleRegistryOptions {
  readonly models: ModelFinder;
  readonly onHeldBack: AlarmParts['onHeldBack'];
  /** Every change that was stored before has come: only up to then it is known that nothing else has. */
  readonly deliveredToMs: () => number;
  /** Adds tasks of a partition; false where it takes none now. */
  readonly offer: (partition: number, tasks: readonly AlarmTask[]) => boolean;
  readonly now: () => number;
}

export interface Alarms {
  readonly processor: Processor<AlarmTask>;
  /** Reads the rules. Throws 503. */
  start(): Promise<void>;
  /** A change, before the processor receives it. */
  apply(change: Change): void;
  /** Changes were missed. Resolves when the rules have been read again, however long the database stays away. */
  reload(): Promise<void>;
  /** How much is remembered of objects: entries of all kinds. */
  remembered(): number;
  stop(): void;
}

const RETRY_MS = 1_000;

interface State extends AlarmsOptions {
  readonly registry: RuleRegistry;
  readonly objects: RuleObjects;
  readonly memories: Map<number, PartitionMemory>;
  readonly loading: Map<PartitionMemory, Promise<PartitionMemory>>;
  /** Resolves when the last one is done. */
  loadings: Promise<unknown>;
  isReconciling: boolean;
}

export function createAlarms(options: AlarmsOptions): Alarms {
  const registry = createRuleRegistry(options, (ruleIds) => lookAtRules(state, ruleIds));
  const objects = createRuleObjects(options.database, registry);
  const state: State = {
    ...options,
    registry,
    objects,
    memories: new Map(),
    loading: new Map(),
    loadings: Promise.resolve(),
    isReconciling: false,
  };
  const stopping = new AbortController();
  let timer: Timer | undefined;
  return {
    processor: createAlarmProcessor({
      ...state,
      acquire: (owned) => acquire(state, owned),
      loaded: (owned) => loaded(state, owned.index),
    }),
    async start() {
      await registry.load();
      timer ??= clock.setInterval(() => run(state), SLOT_MS).unref();
    },
    apply(change) {
      objects.apply(change);
      registry.apply(change);
    },
    async reload() {
      objects.forgetAll();
      await loadUntilRead(state, stopping.signal);
      for (const memory of state.memories.values()) memory.isReconciled = false;
    },
    remembered: () => [...state.memories.values()].reduce((sum, memory) => sum + countRemembered(memory), 0),
    stop() {
      stopping.abort();
      registry.stop();
      clock.clearTimer(timer);
    },
  };
}

async function loadUntilRead({ registry, log }: State, stopped: AbortSignal): Promise<void> {
  for (let failures = 0; !stopped.aborted; failures++) {
    try {
      return await registry.load();
    } catch (error) {
      log.warn({ err: error }, 'failed to read rules; retrying');
      await clock.wait(backoffMs(failures + 1, LIMITS.partitionTickMs, LIMITS.databaseRetryPauseMaxMs, clock.random()));
    }
  }
}

function acquire(state: State, owned: OwnedPartition): void {
  const memory = createPartitionMemory();
  state.memories.set(owned.index, memory);
  owned.lost.addEventListener('abort', () => {
    if (state.memories.get(owned.index) === memory) state.memories.delete(owned.index);
  });
  // A failure is repeated by whoever needs it.
  loaded(state, owned.index).catch(() => undefined);
}

/** What is stored of a partition, read once. Throws 503. */
async function loaded(state: State, index: number): Promise<PartitionMemory> {
  const memory = state.memories.get(index) ?? createPartitionMemory();
  if (memory.isLoaded) return memory;
  const load = async (): Promise<PartitionMemory> => {
    for await (const rows of readStates(state.database, index)) fillMemory(memory, rows);
    memory.isLoaded = true;
    scheduleAll(state, memory);
    return memory;
  };
  const loading = state.loading.get(memory) ?? inTurn(state, load).finally(() => state.loading.delete(memory));
  state.loading.set(memory, loading);
  return loading;
}

/** One after the other: the rows of all partitions at once would hold the process up, and the first one would be as late as the last one. */
async function inTurn<T>(state: State, load: () => Promise<T>): Promise<T> {
  const done = state.loadings.then(load);
  state.loadings = done.catch(() => undefined);
  return done;
}

/** The rules were read again: their states are looked at, those of each partition once however often they change. */
function lookAtRules(state: State, ruleIds: readonly string[]): void {
  for (const [index, memory] of state.memories) {
    for (const ruleId of ruleIds) {
      const tenant = state.registry.find(ruleId)?.stored.tenant ?? memory.changedRules.get(ruleId) ?? '';
      memory.changedRules.set(ruleId, tenant);
    }
    offerRules(state, index, memory);
  }
}

function offerRules({ offer }: State, index: number, memory: PartitionMemory): void {
  if (!memory.isLoaded) return;
  for (const [ruleId, tenant] of memory.changedRules) {
    if (offer(index, [toOwnTask(index, tenant, null, { kind: 'rule', ruleId })])) memory.changedRules.delete(ruleId);
  }
}

function run(state: State): void {
  const untilMs = Math.min(state.deliveredToMs(), state.now());
  for (const [index, memory] of state.memories) {
    if (!memory.isLoaded) {
      loaded(state, index).catch(() => undefined);
      continue;
    }
    offerRules(state, index, memory);
    const objectIds = takeDue(memory, untilMs);
    if (objectIds.length > 0) void offerTicks(state, memory, { index, objectIds, untilMs });
  }
  void reconcile(state);
}

/** Looks at what may have changed while nobody followed: once for all partitions, since it reads every object. */
async function reconcile(state: State): Promise<void> {
  const all = [...state.memories];
  const waiting = all.filter(([, { isReconciled }]) => !isReconciled);
  if (state.isReconciling || waiting.length === 0 || all.some(([, { isLoaded }]) => !isLoaded)) return;
  state.isReconciling = true;
  const memories = new Map(waiting);
  for (const memory of memories.values()) memory.isReconciled = true;
  const again = (memory: PartitionMemory): void => {
    memory.isReconciled = false;
  };
  try {
    for await (const { index, objectId, tenant } of findOutdated(state, memories)) {
      const memory = memories.get(index);
      if (memory === undefined || state.memories.get(index) !== memory) continue;
      const task = toOwnTask(index, tenant, objectId, { kind: 'object' });
      if (!offerOwn(state, memory, [task])) again(memory);
    }
  } catch (error) {
    state.log.warn({ err: error }, 'failed to compare alarms with objects and rules; retrying');
    for (const memory of memories.values()) again(memory);
  } finally {
    state.isReconciling = false;
  }
}

async function offerTicks(
  state: State,
  memory: PartitionMemory,
  { index, objectIds, untilMs }: { index: number; objectIds: readonly string[]; untilMs: number },
): Promise<void> {
  const { objects, now } = state;
  const retry = (failed: readonly string[]): void => {
    for (const objectId of failed) schedule(memory, objectId, now() + RETRY_MS);
  };
  try {
    await objects.read(objectIds);
    for (const tasks of toTicks(index, objectIds, { untilMs, tenantFor: objects.tenantFor })) {
      if (!offerOwn(state, memory, tasks)) retry(tasks.map(({ objectId }) => objectId));
    }
  } catch {
    retry(objectIds);
  }
}

/** Adds tasks of one partition and tenant that follow from no change. Packets that come after them wait for them. */
function offerOwn({ offer }: State, memory: PartitionMemory, tasks: readonly ObjectTask[]): boolean {
  const [first] = tasks;
  if (first === undefined || !offer(first.partition, tasks)) return false;
  for (const task of tasks) memory.waiting.set(task.objectId, task);
  return true;
}
