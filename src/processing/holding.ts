/** A partition in the memory of its owner: where it is, and the tasks that wait to be committed. */

import { LIMITS } from '../core/limits.js';
import { isAfter } from '../core/position.js';
import { clock } from '../platform/clock.js';
import type { StoredPartition } from './partitions.js';
import type { OwnedPartition, Task } from './processor.js';

/** A task, and the processor that planned it. */
export interface PlannedTask {
  readonly processor: number;
  readonly task: Task;
}

export interface Holding {
  readonly owned: OwnedPartition;
  readonly epoch: number;
  /** By the monotonic clock. */
  heldUntilMs: number;
  /** Whether it gets its tasks from the live feed; otherwise out of the history. */
  isLive: boolean;
  /** Everything up to here is committed. */
  position: string;
  /** Everything up to here was planned. */
  planned: string;
  commits: number;
  lastNumber: number;
  readonly tasks: PlannedTask[];
  /** How many bytes these tasks write. */
  bytes: number;
  /** Whether some of its tasks are being committed. */
  isCommitting: boolean;
  lose(): void;
}

export function createHolding({ index, epoch, position, commits, lastNumber }: StoredPartition): Holding {
  const lost = new AbortController();
  const owned: OwnedPartition = {
    index,
    isOwned: () => !lost.signal.aborted && clock.steadyMs() < holding.heldUntilMs,
    lost: lost.signal,
  };
  const holding: Holding = {
    owned,
    epoch,
    position,
    planned: position,
    commits,
    lastNumber,
    heldUntilMs: 0,
    isLive: false,
    tasks: [],
    bytes: 0,
    isCommitting: false,
    lose: () => lost.abort(),
  };
  return holding;
}

/** Adds the tasks of one change, once. */
export function addTasks(holding: Holding, position: string, tasks: readonly PlannedTask[]): void {
  if (!isAfter(position, holding.planned)) return;
  pushTasks(holding, tasks);
  holding.planned = position;
}

/** Adds tasks that belong to no change. */
export function pushTasks(holding: Holding, tasks: readonly PlannedTask[]): void {
  for (const planned of tasks) holding.tasks.push(planned);
  holding.bytes += bytesOf(tasks);
}

/** Puts tasks back that were taken: they are the next ones again. */
export function returnTasks(holding: Holding, taken: readonly PlannedTask[]): void {
  holding.tasks.unshift(...taken);
  holding.bytes += bytesOf(taken);
}

/** Whether more tasks of these partitions have to wait: one of them has enough, or all that are held together have. */
export function areFull(wanted: Iterable<Holding>, holdings: ReadonlyMap<number, Holding>): boolean {
  let bytes = 0;
  for (const holding of holdings.values()) bytes += holding.bytes;
  if (bytes >= LIMITS.taskBytes) return true;
  for (const holding of wanted) if (isFull(holding) && holdings.get(holding.owned.index) === holding) return true;
  return false;
}

const isFull = ({ tasks, bytes }: Holding): boolean =>
  tasks.length >= LIMITS.partitionTasks || bytes >= LIMITS.partitionTaskBytes;

const bytesOf = (tasks: readonly PlannedTask[]): number => tasks.reduce((sum, { task }) => sum + task.bytes, 0);

/** The next tasks, up to so many, and so large; those of one change are never parted. */
export function takeTasks(holding: Holding, limit: { tasks: number; bytes: number }): PlannedTask[] {
  const { tasks } = holding;
  let count = 0;
  let bytes = 0;
  while (count < tasks.length) {
    const { task } = tasks[count] as PlannedTask;
    const isSameChange = count > 0 && task.position !== null && task.position === tasks[count - 1]?.task.position;
    if (count > 0 && !isSameChange && (count >= limit.tasks || bytes + task.bytes > limit.bytes)) break;
    count++;
    bytes += task.bytes;
  }
  holding.bytes -= bytes;
  return tasks.splice(0, count);
}
