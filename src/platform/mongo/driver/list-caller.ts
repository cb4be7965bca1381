/** The caller of a list, with the queues and the budget that its list uses. */

import type { ListCost } from '../../../core/list.js';
import type { Budget } from '../../budget.js';
import type { FairQueue, QueueCaller } from '../../fair-queue.js';

export interface ListCaller extends QueueCaller {
  /** Aborted when the caller no longer waits. */
  disconnectSignal(): AbortSignal;
  /** Charges the time that the database spent on the list. */
  consumeForMs(ms: number): void;
}

export type ListQueues = Readonly<Record<ListCost, FairQueue>>;

export interface ListRequest {
  readonly queues: ListQueues;
  /** For pages that are not sent yet. */
  readonly budget: Budget;
  readonly caller: ListCaller;
}
