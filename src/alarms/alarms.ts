/** Alarms: the rules, their states, and the instants at which time alone changes these. */
import { backoffMs } from '../core/backoff.js';
import type { Change } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import type { ModelFinder } from '../packets/models.js';
import { clock, type Timer } from '../platform/clock.js';
import type { OwnedPartition, Processor } from '../processing/processor.js';
import { createPartitionMemory, fillMemory, type PartitionMemory, SLOT_MS, schedule } from './partition-memory.js';
import { type AlarmTask, createAlarmProcessor, scheduleAll, takeTicks } from './processor.js';
import { createRuleObjects, type RuleObjects } from './rule-objects.js';
import { createRuleRegistry, type RuleRegistry, type RuleRegistryOptions } from './rule-registry.js';
import { loadStates } from './states.js';

export interface AlarmsOptions extends RuleRegistryOptions {
  readonly models: ModelFinder;
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
  apply(change: Change): undefined | Promise<void>;
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
  const registry = createRuleRegistry(options);
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
      return registry.apply(change);
    },
    async reload() {
      objects.forgetAll();
      await loadUntilRead(state, stopping.signal);
    },
    stop() {
      stopping.abort();
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

function run(state: State): void {
  if (!state.isLive()) return;
  const nowMs = state.now();
  for (const [index, memory] of state.memories) {
    if (!memory.isLoaded) {
      loaded(state, index).catch(() => undefined);
      continue;
    }
    const tasks = takeTicks(memory, index, nowMs);
    if (tasks.length === 0 || state.offer(index, tasks)) continue;
    for (const { objectId } of tasks) schedule(memory, objectId as string, nowMs + RETRY_MS);
  }
}
