/** What is committed together: some tasks of each tenant, in turn, and their outputs. */

import { LIMITS } from '../core/limits.js';
import type { Advance } from './commit.js';
import {
  findDone,
  type Holding,
  type Holdings,
  type PlannedTask,
  returnTasks,
  type TenantQueue,
  takeTasks,
} from './holding.js';
import { createTurn, type Outputs, type Processor, type Task, type Turn } from './processor.js';

export interface PartOptions {
  readonly processors: readonly Processor[];
  readonly holdings: Holdings;
  /** Up to where the live feed is done. */
  readonly livePosition: () => string;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
}

/** The outputs of one partition. */
export interface Part {
  readonly holding: Holding;
  readonly taken: readonly PlannedTask[];
  /** The task after them, where they were parted: it may be of the same change. */
  readonly next: PlannedTask | undefined;
  /** How far they bring the queues of tenants. */
  readonly committed: ReadonlyMap<TenantQueue, string>;
  readonly advance: Advance;
  readonly outputs: readonly Outputs[];
}

const hasTasks = ({ tasks }: TenantQueue): boolean => tasks.length > 0;

/** The partitions whose tasks can be committed, from the first one whose turn it is. */
export function findWaiting(holdings: Holdings, first: number): readonly Holding[] {
  const waiting = [...holdings.values()]
    .filter(({ queues, owned }) => owned.isOwned() && [...queues.values()].some(hasTasks))
    .sort((a, b) => a.owned.index - b.owned.index);
  const start = Math.max(
    0,
    waiting.findIndex(({ owned }) => owned.index >= first),
  );
  return [...waiting.slice(start), ...waiting.slice(0, start)];
}

/** Takes a share of what fits into one transaction from each. Where a processor fails, the tasks wait on. */
export async function prepareParts(
  options: PartOptions,
  waiting: readonly Holding[],
): Promise<{ parts: readonly Part[]; hasFailed: boolean }> {
  let hasFailed: boolean = false;
  const parts: Part[] = [];
  const turn = createTurn();
  for (const [holding, taken] of takeShares(waiting)) {
    try {
      const part = await preparePart(options, holding, { taken, turn });
      if (part.taken.length > 0) parts.push(part);
      else endCommit(holding);
    } catch (error) {
      hasFailed = true;
      options.log.error({ err: error, partition: holding.owned.index }, 'failed to prepare outputs; retrying');
      giveBack(holding, taken);
      endCommit(holding);
    }
  }
  return { parts, hasFailed };
}

/** The tasks wait on, each in its queue. */
function giveBack(holding: Holding, taken: readonly PlannedTask[]): void {
  for (const queue of holding.queues.values()) {
    returnTasks(
      queue,
      taken.filter(({ task }) => task.tenant === queue.tenant),
    );
  }
}

/** Takes the tasks of one transaction. Each tenant has the same share; those who have least are first, and what they leave is shared by the rest. */
function takeShares(waiting: readonly Holding[]): ReadonlyMap<Holding, readonly PlannedTask[]> {
  let tasks: number = LIMITS.commitTasks;
  let bytes: number = LIMITS.commitBytes;
  const shares = new Map<Holding, PlannedTask[]>();
  const tenants = groupByTenant(waiting);
  for (const [nth, queues] of tenants.entries()) {
    const left = { tasks: Math.ceil(tasks / (tenants.length - nth)), bytes: bytes / (tenants.length - nth) };
    for (const [at, { holding, queue }] of queues.entries()) {
      if (left.tasks <= 0 || left.bytes <= 0) break;
      const sharing = queues.length - at;
      const taken = takeTasks(queue, { tasks: Math.ceil(left.tasks / sharing), bytes: left.bytes / sharing });
      const takenBytes = taken.reduce((sum, { task }) => sum + task.bytes, 0);
      left.tasks -= taken.length;
      left.bytes -= takenBytes;
      tasks -= taken.length;
      bytes -= takenBytes;
      queue.isCommitting = true;
      holding.isCommitting = true;
      shares.set(holding, [...(shares.get(holding) ?? []), ...taken]);
    }
  }
  return shares;
}

interface WaitingQueue {
  readonly holding: Holding;
  readonly queue: TenantQueue;
}

function groupByTenant(waiting: readonly Holding[]): readonly (readonly WaitingQueue[])[] {
  const groups = new Map<string, { count: number; queues: WaitingQueue[] }>();
  for (const holding of waiting) {
    for (const queue of holding.queues.values()) {
      if (!hasTasks(queue)) continue;
      const group = groups.get(queue.tenant) ?? { count: 0, queues: [] };
      group.count += queue.tasks.length;
      group.queues.push({ holding, queue });
      groups.set(queue.tenant, group);
    }
  }
  return [...groups.values()].sort((a, b) => a.count - b.count).map(({ queues }) => queues);
}

/** Nothing of the partition is being committed any more. */
export function endCommit(holding: Holding): void {
  holding.isCommitting = false;
  for (const queue of holding.queues.values()) queue.isCommitting = false;
}

interface ToPrepare {
  readonly taken: readonly PlannedTask[];
  readonly next?: PlannedTask | undefined;
  readonly turn: Turn;
}

/**
 * The outputs of tasks, and how far they bring the partition: not past the change that the next task belongs to. What the turn has no room
 * for is not among those that are taken any more.
 */
export async function preparePart(
  { processors, livePosition }: PartOptions,
  holding: Holding,
  { taken: all, next, turn }: ToPrepare,
): Promise<Part> {
  let { lastNumber } = holding;
  let taken = all;
  let left: readonly PlannedTask[] = [];
  const nextNumber = (): number => ++lastNumber;
  const outputs: Outputs[] = [];
  for (const [index, processor] of processors.entries()) {
    const own = taken.filter((one) => one.processor === index).map(({ task }) => task);
    if (own.length === 0) continue;
    const made = await processor.prepare(holding.owned, own, nextNumber, turn);
    outputs.push(made);
    if (made.left === undefined || made.left.length === 0) continue;
    if (left.length > 0 || outputs.length > 1) throw new Error(`${processor.name} must be the first to leave tasks`);
    left = toLeft(taken, made.left);
    const isLeft = new Set(left);
    taken = taken.filter((one) => !isLeft.has(one));
  }
  giveBack(holding, left);
  const committed = findCommitted(holding, taken, next);
  const { epoch, commits } = holding;
  const done = findDone(holding, livePosition(), committed);
  return {
    holding,
    taken,
    next,
    committed,
    outputs,
    advance: { index: holding.owned.index, epoch, commits, done, lastNumber },
  };
}

/** Those of each tenant from the change on whose task is left: tasks of one change are never parted. */
function toLeft(taken: readonly PlannedTask[], tasks: readonly Task[]): readonly PlannedTask[] {
  const isLeft = new Set(tasks);
  const from = new Map<string, Task>();
  for (const task of tasks) if (!from.has(task.tenant)) from.set(task.tenant, task);
  const begun = new Set<string>();
  return taken.filter(({ task }) => {
    const first = from.get(task.tenant);
    const isOfFirst = task.position !== null && task.position === first?.position;
    if (isLeft.has(task) || isOfFirst) begun.add(task.tenant);
    return begun.has(task.tenant);
  });
}

function findCommitted(
  { queues }: Holding,
  taken: readonly PlannedTask[],
  next: PlannedTask | undefined,
): ReadonlyMap<TenantQueue, string> {
  const committed = new Map<TenantQueue, string>();
  for (const { task } of taken) {
    const queue = queues.get(task.tenant);
    if (queue === undefined) continue;
    const isParted = task.tenant === next?.task.tenant && task.position === next.task.position;
    const isDone = task.position !== null && !isParted;
    committed.set(queue, isDone ? task.position : (committed.get(queue) ?? queue.position));
  }
  return committed;
}
