/** Brings partitions from their positions up to the live feed: from the history, or if that is gone, from stored data. */

import type { Change, OpenHistory } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import { isAfter, secondsOf } from '../core/position.js';
import { clock } from '../platform/clock.js';
import type { Holding } from './holding.js';
import type { Processor, Task } from './processor.js';

export interface CatchUpParts {
  readonly openHistory: OpenHistory;
  readonly processors: readonly Processor[];
  /** The last change that the live feed has started to process. */
  readonly livePosition: () => string;
  /** Plans the change for these partitions. */
  readonly plan: (change: Change, wanted: ReadonlyMap<number, Holding>) => Promise<void>;
  /** Adds tasks without a change for these partitions. */
  readonly addRefill: (processor: number, tasks: readonly Task[], wanted: ReadonlyMap<number, Holding>) => void;
  /** Whether more tasks of these partitions have to wait. */
  readonly isFull: (wanted: ReadonlyMap<number, Holding>) => boolean;
  readonly wake: () => void;
  /** Called when the history of these partitions is gone. */
  readonly onRefill: (partitions: readonly number[], fromMs: number) => void;
  readonly now: () => number;
}

/** Resolves when all partitions are live or lost. Throws when reading the history fails: the caller starts again with the rest. */
export async function catchUp(parts: CatchUpParts, given: readonly Holding[]): Promise<void> {
  const behind = new Map(given.filter(isOurs).map((holding) => [holding.owned.index, holding]));
  const first = earliestOf(behind);
  if (first === null) return;
  const history = await parts.openHistory(first);
  if (history === null) {
    await refill(parts, await findLost(parts, [...behind.values()]));
    return catchUp(parts, given);
  }
  for await (const { changes, upTo } of history) {
    for (const change of changes) {
      if (isAfter(change.position, parts.livePosition())) return join(behind);
      await parts.plan(change, behind);
      await waitForRoom(parts, behind);
      if (behind.size === 0) return;
    }
    if (!isAfter(parts.livePosition(), upTo)) return join(behind);
    for (const holding of behind.values()) if (isBefore(holding, upTo)) holding.planned = upTo;
    forgetLost(behind);
    if (behind.size === 0) return;
  }
}

/** Waits until the partitions can have more tasks; forgets those that are lost. */
async function waitForRoom({ isFull }: CatchUpParts, wanted: Map<number, Holding>): Promise<void> {
  forgetLost(wanted);
  while (wanted.size > 0 && isFull(wanted)) {
    await clock.wait(LIMITS.historyWaitMs);
    forgetLost(wanted);
  }
}

function forgetLost(wanted: Map<number, Holding>): void {
  for (const [index, holding] of wanted) if (!isOurs(holding)) wanted.delete(index);
}

const isOurs = ({ owned, isLive }: Holding): boolean => !isLive && !owned.lost.aborted;

const isBefore = ({ planned }: Holding, position: string): boolean => isAfter(position, planned);

/** Takes effect at once: the live feed plans every later change for these partitions. */
function join(behind: ReadonlyMap<number, Holding>): void {
  for (const holding of behind.values()) holding.isLive = true;
}

function earliestOf(behind: ReadonlyMap<number, Holding>): string | null {
  const positions = [...behind.values()].map(({ planned }) => planned);
  return positions.length === 0 ? null : positions.reduce((first, one) => (isAfter(first, one) ? one : first));
}

/** The partitions whose history is gone: those with the earliest positions. */
async function findLost({ openHistory }: CatchUpParts, behind: readonly Holding[]): Promise<readonly Holding[]> {
  const inOrder = [...behind].sort((a, b) => (isBefore(a, b.planned) ? -1 : 1));
  for (const [index, { planned }] of inOrder.entries()) {
    const history = index === 0 ? null : await openHistory(planned);
    if (history === null) continue;
    // A generator closes its cursor only if it was started.
    for await (const _ of history) break;
    return inOrder.slice(0, index);
  }
  return inOrder;
}

/** Adds tasks made from data stored since the positions of the partitions, which then continue with the live feed. */
async function refill(parts: CatchUpParts, lost: readonly Holding[]): Promise<void> {
  const position = parts.livePosition();
  const wanted = new Map(lost.map((holding) => [holding.owned.index, holding]));
  const positionMs = Math.min(...lost.map(({ planned }) => secondsOf(planned) * 1_000));
  // Packets get their time before they are stored, from another clock.
  const fromMs = positionMs - LIMITS.refillMarginMs;
  const toMs = parts.now() + LIMITS.refillMarginMs;
  parts.onRefill([...wanted.keys()], positionMs);
  for (const [index, processor] of parts.processors.entries()) {
    for await (const tasks of processor.refill([...wanted.keys()], { fromMs, toMs })) {
      parts.addRefill(index, tasks, wanted);
      parts.wake();
      await waitForRoom(parts, wanted);
      if (wanted.size === 0) return;
    }
  }
  for (const holding of lost) holding.planned = position;
}
