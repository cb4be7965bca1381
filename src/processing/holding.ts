/**
 * A partition in the memory of its owner: how far it is, and the tasks that wait to be committed. Each tenant that has tasks has a queue
 * of its own, and waits only behind itself.
 */

import { LIMITS } from '../core/limits.js';
import { isAfter } from '../core/position.js';
import { clock } from '../platform/clock.js';
import type { Done, StoredPartition } from './partitions.js';
import type { OwnedPartition, Task } from './processor.js';

/** A task, and the processor that planned it. */
export interface PlannedTask {
  readonly processor: number;
  readonly task: Task;
}

/** What changes come from: the live feed, or a reader of the history. */
export interface Source {
  /** Queues that had enough when a reader added tasks last. */
  readonly full: Set<TenantQueue>;
}

export const createSource = (): Source => ({ full: new Set() });

export const LIVE_FEED = createSource();

/** How far tasks were planned. */
export interface Progress {
  source: Source;
  /** Everything up to here was planned. */
  planned: string;
}

/** The tasks of one tenant, in order. */
export interface TenantQueue extends Progress {
  readonly tenant: string;
  /** Everything of the tenant up to here is committed. */
  position: string;
  readonly tasks: PlannedTask[];
  /** How many bytes these tasks write. */
  bytes: number;
  /** Whether some of its tasks are being committed. */
  isCommitting: boolean;
}

export interface Holding {
  readonly owned: OwnedPartition;
  readonly epoch: number;
  /** By the monotonic clock. */
  heldUntilMs: number;
  /** Of all tenants that have no queue. */
  readonly rest: Progress;
  /** By tenant, in the order in which they came. */
  readonly queues: Map<string, TenantQueue>;
  commits: number;
  lastNumber: number;
  /** Whether some of its tasks are being committed. */
  isCommitting: boolean;
  lose(): void;
}

export function createHolding(stored: StoredPartition): Holding {
  const { index, epoch, position, rest, tenants, commits, lastNumber } = stored;
  const lost = new AbortController();
  const owned: OwnedPartition = {
    index,
    isOwned: () => !lost.signal.aborted && clock.steadyMs() < holding.heldUntilMs,
    committedNumber: () => holding.lastNumber,
    lost: lost.signal,
  };
  const holding: Holding = {
    owned,
    epoch,
    rest: { source: NOWHERE, planned: rest ?? position },
    queues: new Map(tenants.map((one) => [one.tenant, createQueue(one.tenant, NOWHERE, one.position)])),
    commits,
    lastNumber,
    heldUntilMs: 0,
    isCommitting: false,
    lose: () => lost.abort(),
  };
  return holding;
}

/** Of a partition that has just been taken. */
const NOWHERE = createSource();

const createQueue = (tenant: string, source: Source, position: string): TenantQueue => ({
  tenant,
  source,
  planned: position,
  position,
  tasks: [],
  bytes: 0,
  isCommitting: false,
});

export const progressOf = ({ queues, rest }: Holding, tenant: string): Progress => queues.get(tenant) ?? rest;

/** All of them, the rest first. */
export const progressesOf = ({ queues, rest }: Holding): readonly Progress[] => [rest, ...queues.values()];

/** The queue of the tenant; a new one is where all without a queue are. `livePosition` is up to where the live feed is done. */
export function queueFor(holding: Holding, tenant: string, livePosition: string): TenantQueue {
  const { queues, rest } = holding;
  const present = queues.get(tenant);
  if (present !== undefined) return present;
  const created = createQueue(tenant, rest.source, doneTo(rest, livePosition));
  created.planned = rest.planned;
  queues.set(tenant, created);
  return created;
}

/** Where nothing waits, everything up to here is done. */
const doneTo = ({ source, planned }: Progress, livePosition: string): string =>
  source === LIVE_FEED && isAfter(livePosition, planned) ? livePosition : planned;

/** Adds the tasks of one change, once. */
export function addTasks(queue: TenantQueue, position: string, tasks: readonly PlannedTask[]): void {
  if (!isAfter(position, queue.planned)) return;
  pushTasks(queue, tasks);
  queue.planned = position;
}

/** Everything up to this position was planned. */
export function passTo(progress: Progress, position: string): void {
  if (isAfter(position, progress.planned)) progress.planned = position;
}

/** Adds tasks that belong to no change. */
export function pushTasks(queue: TenantQueue, tasks: readonly PlannedTask[]): void {
  for (const planned of tasks) queue.tasks.push(planned);
  queue.bytes += bytesOf(tasks);
}

/** Puts tasks back that were taken: they are the next ones again. */
export function returnTasks(queue: TenantQueue, taken: readonly PlannedTask[]): void {
  queue.tasks.unshift(...taken);
  queue.bytes += bytesOf(taken);
}

export type Holdings = ReadonlyMap<number, Holding>;

/** Whether more tasks of the tenant have to wait: its queue is long, or it has more than a little while all tenants have enough. */
export function isFull(queue: TenantQueue, holdings: Holdings): boolean {
  const all = [...holdings.values()];
  const own = all.flatMap(({ queues }) => queues.get(queue.tenant) ?? []);
  if (!own.includes(queue)) return false;
  if (queue.tasks.length >= LIMITS.partitionTasks || queue.bytes >= LIMITS.partitionTaskBytes) return true;
  if (sumBytes(own) < LIMITS.tenantTaskBytesUnderLoad) return false;
  return all.reduce((sum, { queues }) => sum + sumBytes(queues.values()), 0) >= LIMITS.taskBytes;
}

function sumBytes(queues: Iterable<TenantQueue>): number {
  let sum = 0;
  for (const { bytes } of queues) sum += bytes;
  return sum;
}

const bytesOf = (tasks: readonly PlannedTask[]): number => tasks.reduce((sum, { task }) => sum + task.bytes, 0);

/** The next tasks, up to so many, and so large; those of one change are never parted. */
export function takeTasks(queue: TenantQueue, limit: { tasks: number; bytes: number }): PlannedTask[] {
  const { tasks } = queue;
  let count = 0;
  let bytes = 0;
  while (count < tasks.length) {
    const { task } = tasks[count] as PlannedTask;
    const isSameChange = count > 0 && task.position !== null && task.position === tasks[count - 1]?.task.position;
    if (count > 0 && !isSameChange && (count >= limit.tasks || bytes + task.bytes > limit.bytes)) break;
    count++;
    bytes += task.bytes;
  }
  queue.bytes -= bytes;
  return tasks.splice(0, count);
}

/** How far everything is done once these queues are done up to these positions. Drops queues that have nothing more. */
export function findDone(
  holding: Holding,
  livePosition: string,
  committed: ReadonlyMap<TenantQueue, string> = new Map(),
): Done {
  const { queues, rest } = holding;
  for (const queue of queues.values()) if (isOver(holding, queue, livePosition)) queues.delete(queue.tenant);
  const positionOf = (queue: TenantQueue): string => {
    const isWaiting = queue.tasks.length > 0 || queue.isCommitting;
    return committed.get(queue) ?? (isWaiting ? queue.position : doneTo(queue, livePosition));
  };
  return {
    rest: doneTo(rest, livePosition),
    tenants: [...queues.values()].map((queue) => ({ tenant: queue.tenant, position: positionOf(queue) })),
  };
}

/** Whether the tenant is where all without a queue are. */
const isOver = ({ rest }: Holding, queue: TenantQueue, livePosition: string): boolean =>
  queue.tasks.length === 0 &&
  !queue.isCommitting &&
  queue.source === LIVE_FEED &&
  rest.source === LIVE_FEED &&
  !isAfter(queue.planned, livePosition);
