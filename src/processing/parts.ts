/** What is committed together: some tasks of each partition, in turn, and their outputs. */

import { LIMITS } from '../core/limits.js';
import type { Advance } from './commit.js';
import { type Holding, type PlannedTask, returnTasks, takeTasks } from './holding.js';
import type { Outputs, Processor } from './processor.js';

export interface PartOptions {
  readonly processors: readonly Processor[];
  readonly holdings: ReadonlyMap<number, Holding>;
  readonly log: { warn(details: object, message: string): void; error(details: object, message: string): void };
}

/** The outputs of one partition. */
export interface Part {
  readonly holding: Holding;
  readonly taken: readonly PlannedTask[];
  /** The task after them, where they were parted: it may be of the same change. */
  readonly next: PlannedTask | undefined;
  readonly advance: Advance;
  readonly outputs: readonly Outputs[];
}

/** The partitions whose tasks can be committed, from the first one whose turn it is. */
export function findWaiting(holdings: ReadonlyMap<number, Holding>, first: number): readonly Holding[] {
  const waiting = [...holdings.values()]
    .filter(({ tasks, owned }) => tasks.length > 0 && owned.isOwned())
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
  let tasks: number = LIMITS.commitTasks;
  let bytes: number = LIMITS.commitBytes;
  let hasFailed: boolean = false;
  const parts: Part[] = [];
  for (const [nth, holding] of waiting.entries()) {
    if (tasks <= 0 || bytes <= 0) break;
    // It may have been lost, or given back, since.
    if (options.holdings.get(holding.owned.index) !== holding) continue;
    // What those before it left of their shares is shared by the rest.
    const sharing = waiting.length - nth;
    const taken = takeTasks(holding, { tasks: Math.ceil(tasks / sharing), bytes: bytes / sharing });
    try {
      parts.push(await preparePart(options, holding, taken));
      tasks -= taken.length;
      bytes -= taken.reduce((sum, { task }) => sum + task.bytes, 0);
    } catch (error) {
      hasFailed = true;
      options.log.error({ err: error, partition: holding.owned.index }, 'failed to prepare outputs; retrying');
      returnTasks(holding, taken);
      holding.isCommitting = false;
    }
  }
  return { parts, hasFailed };
}

/** The outputs of tasks, and how far they bring the partition: not past the change that the next task belongs to. */
export async function preparePart(
  { processors }: PartOptions,
  holding: Holding,
  taken: readonly PlannedTask[],
  next?: PlannedTask,
): Promise<Part> {
  holding.isCommitting = true;
  let { lastNumber } = holding;
  const nextNumber = (): number => ++lastNumber;
  const outputs: Outputs[] = [];
  for (const [index, processor] of processors.entries()) {
    const own = taken.filter((one) => one.processor === index).map(({ task }) => task);
    if (own.length > 0) outputs.push(await processor.prepare(holding.owned, own, nextNumber));
  }
  const isDone = ({ task }: PlannedTask): boolean => task.position !== null && task.position !== next?.task.position;
  const position = taken.findLast(isDone)?.task.position ?? holding.position;
  const { epoch, commits } = holding;
  return {
    holding,
    taken,
    next,
    outputs,
    advance: { index: holding.owned.index, epoch, commits, position, lastNumber },
  };
}
