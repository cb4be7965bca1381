/** What callers share in the service, and how it is divided among them. */
import { LIMITS } from '../model/limits.js';
import type { ListCost } from '../model/list.js';
import { createFairQueue, type FairQueue } from './fair-queue.js';

export interface Fairness {
  readonly listQueues: Readonly<Record<ListCost, FairQueue>>;
}

export function createFairness(): Fairness {
  const waits = {
    waiting: LIMITS.listsWaiting,
    waitingPerCaller: LIMITS.listsWaitingPerCaller,
    waitMs: LIMITS.listWaitMs,
  };
  const lists = (what: string, atOnce: number, perCaller: number): FairQueue =>
    createFairQueue(what, { ...waits, atOnce, perCaller });
  return {
    listQueues: {
      quick: lists('lists', LIMITS.quickListsAtOnce, LIMITS.quickListsPerCaller),
      page: lists('long lists', LIMITS.pagesAtOnce, LIMITS.pagesPerCaller),
      scan: lists('counts, searches or sorted lists', LIMITS.scansAtOnce, LIMITS.scansPerCaller),
    },
  };
}
