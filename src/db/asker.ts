/** Who asks for a list, and what it waits for. */
import type { Budget } from '../fairness/budget.js';
import type { FairQueue } from '../fairness/fair-queue.js';
import type { ListCost } from '../model/list.js';

export interface Asker {
  readonly caller: string;
  /** Aborted when the caller does not wait any more. */
  gone(): AbortSignal;
  /** How long the database was busy with it, or with the same list of another. */
  spent(ms: number): void;
}

export type ListQueues = Readonly<Record<ListCost, FairQueue>>;

export interface Listing {
  readonly queues: ListQueues;
  /** Pages that have not left the process yet. */
  readonly budget: Budget;
  readonly asker: Asker;
}
