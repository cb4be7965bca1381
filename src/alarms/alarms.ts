/** Alarms: the rules, their states, and the instants at which time alone changes these. */
import { backoffMs } from '../core/backoff.js';
import type { Change } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import type { ModelFinder } from '../packets/models.js';
import { clock, type Timer } from '../platform/clock.js';
import type { OwnedPartition, Processor } from '../processing/processor.js';
import type { AlarmParts } from './alarm-writes.js';
import {
  createPartitionMemory,
  fillMemory,
  type PartitionMemory,
  SLOT_MS,
  schedule,
  takeDue,
} from './partition-memory.js';
import { type AlarmTask, createAlarmProcessor, scheduleAll, toOwnTask, toTicks } from './processor.js';
import { findOutdated } from './reconcile.js';
import { createRuleObjects, type RuleObjects } from './rule-objects.js';
import { createRuleRegistry, type RuleRegistry, type RuleRegistryOptions } from './rule-registry.js';
import { loadStates } from './states.js';

export interface AlarmsOptions extends RuleRegistryOptions {
  readonly models: ModelFinder;
  readonly onHeldBack: AlarmParts['onHeldBack'];
  /** Whether changes arrive: only then it is known that nothing has come. */
  readonly isLive: () => boolean;
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
  stop(): void;
}

const RETRY_MS = 1_000;

interface State extends AlarmsOptions {
  readonly registry: RuleRegistry;
  readonly objects: RuleObjects;
  readonly memories: Map<number, PartitionMemory>;
  readonly loading: Map<PartitionMemory, Promise<PartitionMemory>>;
}

export function createAlarms(options: AlarmsOptions): Alarms {
  const registry = createRuleRegistry(options, (ruleIds) => lookAtRules(state, ruleIds));
  const objects = createRuleObjects(options.database, registry);
  const state: State = { ...options, registry, objects, memories: new Map(), loading: new Map() };
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
    fillMemory(memory, await loadStates(state.database, index));
    scheduleAll(state, memory);
    return memory;
  };
  const loading = state.loading.get(memory) ?? load().finally(() => state.loading.delete(memory));
  state.loading.set(memory, loading);
  return loading;
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
  if (!state.isLive()) return;
  for (const [index, memory] of state.memories) {
    if (!memory.isLoaded) {
      loaded(state, index).catch(() => undefined);
      continue;
    }
    offerRules(state, index, memory);
    const due = takeDue(memory, state.now());
    if (due.length > 0) void offerTicks(state, index, memory, due);
  }
  void reconcile(state);
}

/** Looks at what may have changed while nobody followed. */
async function reconcile(state: State): Promise<void> {
  const waiting = [...state.memories].filter(([, { isLoaded, isReconciled }]) => isLoaded && !isReconciled);
  if (waiting.length === 0) return;
  const memories = new Map(waiting);
  for (const memory of memories.values()) memory.isReconciled = true;
  const again = (memory: PartitionMemory | undefined): void => {
    if (memory !== undefined) memory.isReconciled = false;
  };
  try {
    for await (const { index, objectId, tenant } of findOutdated(state, memories)) {
      const memory = memories.get(index);
      if (state.memories.get(index) !== memory) continue;
      const isTaken = state.offer(index, [toOwnTask(index, tenant, objectId, { kind: 'object' })]);
      if (!isTaken) again(memory);
    }
  } catch (error) {
    state.log.warn({ err: error }, 'failed to compare alarms with objects and rules; retrying');
    for (const memory of memories.values()) again(memory);
  }
}

async function offerTicks(
  { objects, offer, now }: State,
  index: number,
  memory: PartitionMemory,
  due: readonly string[],
): Promise<void> {
  const retry = (objectIds: readonly string[]): void => {
    for (const objectId of objectIds) schedule(memory, objectId, now() + RETRY_MS);
  };
  try {
    await objects.read(due);
    for (const tasks of toTicks(index, due, objects.tenantFor)) {
      if (!offer(index, tasks)) retry(tasks.flatMap(({ objectId }) => objectId ?? []));
    }
  } catch {
    retry(due);
  }
}
