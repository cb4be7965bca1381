/** The interface between the engine and its users: they turn changes into tasks, and tasks into outputs. */

import type { Change } from '../core/change.js';
import { LIMITS } from '../core/limits.js';
import type { OutputWrite } from './commit.js';

/** A partition that this instance owns. */
export interface OwnedPartition {
  readonly index: number;
  /** Whether this instance still owns it, by the monotonic clock. */
  isOwned(): boolean;
  /** Outputs up to this number are known to be stored. Those of a commit without an answer may be seen before, and may not stay. */
  committedNumber(): number;
  /** Aborted when another instance owns it. */
  readonly lost: AbortSignal;
}

/** Work that follows from a change. The tasks of a tenant in a partition are done in order. */
export interface Task {
  readonly partition: number;
  /** Whose work it is: tenants take turns. */
  readonly tenant: string;
  /** The position of the change; null for a task without one. */
  readonly position: string | null;
  /** About how many bytes it writes. */
  readonly bytes: number;
}

/** What tenants may compute for one transaction. */
export interface Turn {
  /** The tenant has had its share: its next task waits for another turn. Never before its first task. */
  isOver(tenant: string): boolean;
  spend(tenant: string, steps: number): void;
}

/** Without shares. */
export const ENDLESS: Turn = { isOver: () => false, spend: () => undefined };

export function createTurn(): Turn {
  const taken = new Map<string, number>();
  return {
    isOver: (tenant) => (taken.get(tenant) ?? 0) >= LIMITS.commitTenantSteps,
    spend: (tenant, steps) => void taken.set(tenant, (taken.get(tenant) ?? 0) + steps),
  };
}

/** The results of tasks. */
export interface Outputs {
  readonly writes: readonly OutputWrite[];
  /** The tasks that wait for another turn: of each tenant those from one on. Of the first processor only. */
  readonly left?: readonly Task[];
  /** Called when the outputs are stored. */
  committed(): void;
}

/** Whether tasks of this tenant in this partition are planned now. */
export type IsWanted = (partition: number, tenant: string) => boolean;

/** What the live feed does not give. */
export interface RefilledInterval {
  /** When it was stored, in ms since the epoch. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Where the live feed goes on: all changes up to there are among what is stored. */
  readonly position: string;
}

export interface Processor<T extends Task = Task> {
  readonly name: string;
  /** The tasks of a change. Called for every change: must return `NO_TASKS` fast if there are none. */
  plan(change: Change, isWanted: IsWanted): readonly T[] | Promise<readonly T[]>;
  /** The outputs of tasks, also again of some of them. `nextNumber` returns numbers that increase within the partition, across owners. */
  prepare(owned: OwnedPartition, tasks: readonly T[], nextNumber: () => number, turn: Turn): Outputs | Promise<Outputs>;
  /** Which task it is, for the log. */
  describe(task: T): object;
  /** This instance owns the partition from now on. */
  acquire(owned: OwnedPartition): void;
  /** Called before the partition is released: resolves when no work of it is in progress. */
  leave(owned: OwnedPartition): Promise<void>;
  /** The history of the interval is gone: yields tasks of these partitions made from stored data. */
  refill(partitions: readonly number[], interval: RefilledInterval): AsyncIterable<readonly T[]>;
}

export const NO_TASKS: readonly never[] = [];

/** The partition of an entity by FNV-1a, so that all instances agree. */
export function partitionOf(id: string, count: number): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < id.length; index++) hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193);
  return ((hash ^ (hash >>> 15)) >>> 0) % count;
}
