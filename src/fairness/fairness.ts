/** What callers share in the service, and how it is divided among them. */
import { LIMITS } from '../model/limits.js';
import type { ListCost } from '../model/list.js';
import { type Budget, createBudget } from './budget.js';
import { createFairQueue, type FairQueue } from './fair-queue.js';

export interface Fairness {
  readonly listQueues: Readonly<Record<ListCost, FairQueue>>;
  /** Answers that have not left yet. */
  readonly answerBudget: Budget;
  /** Bodies of requests that are not answered yet. */
  readonly bodyBudget: Budget;
  /** Where entities are checked against schemas of tenants' own. */
  readonly checkQueue: FairQueue;
  /** Where big bodies become values. */
  readonly bodyQueue: FairQueue;
}

export function createFairness(): Fairness {
  const recheckAll = (): void => {
    for (const queue of Object.values(listQueues)) queue.recheck();
  };
  const answerBudget = createBudget(
    'answers',
    {
      perCaller: LIMITS.answerBytesPerCaller,
      inAll: LIMITS.answerBytes,
      little: LIMITS.answerLittleBytes,
      reserve: LIMITS.answerReserveBytes,
    },
    recheckAll,
  );
  const listQueues = createListQueues((caller) => answerBudget.of(caller) < LIMITS.answerBytesWait);
  return {
    listQueues,
    answerBudget,
    bodyBudget: createBodyBudget(),
    bodyQueue: createBodyQueue(),
    checkQueue: createCheckQueue(),
  };
}

const createBodyBudget = (): Budget =>
  createBudget('request bodies', {
    perCaller: LIMITS.bodyBytesPerCaller,
    inAll: LIMITS.bodyBytes,
    little: LIMITS.bodyLittleBytes,
    reserve: LIMITS.bodyReserveBytes,
  });

const createBodyQueue = (): FairQueue =>
  createFairQueue('large bodies', {
    atOnce: LIMITS.bigBodiesAtOnce,
    perCaller: LIMITS.bigBodiesPerCaller,
    waiting: LIMITS.bigBodiesWaiting,
    waitingPerCaller: LIMITS.bigBodiesWaitingPerCaller,
    waitMs: LIMITS.bigBodyWaitMs,
  });

const createCheckQueue = (): FairQueue =>
  createFairQueue('entities to be checked', {
    atOnce: LIMITS.checksAtOnce,
    perCaller: LIMITS.checksPerCaller,
    waiting: LIMITS.checksWaiting,
    waitingPerCaller: LIMITS.checksWaitingPerCaller,
    waitMs: LIMITS.listWaitMs,
    rests: LIMITS.checkRests,
  });

/** Where the objects of subscriptions are looked for. */
export const createSubscriptionQueue = (): FairQueue =>
  createFairQueue('subscriptions', {
    atOnce: LIMITS.subscriptionsAtOnce,
    perCaller: LIMITS.subscriptionsPerCaller,
    waiting: LIMITS.subscriptionsWaiting,
    waitingPerCaller: LIMITS.subscriptionsWaitingPerCaller,
    waitMs: LIMITS.listWaitMs,
    rests: LIMITS.subscriptionRests,
  });

function createListQueues(mayStart: (caller: string) => boolean): Fairness['listQueues'] {
  const waits = {
    waiting: LIMITS.listsWaiting,
    waitingPerCaller: LIMITS.listsWaitingPerCaller,
    waitMs: LIMITS.listWaitMs,
  };
  const lists = (what: string, atOnce: number, perCaller: number): FairQueue =>
    createFairQueue(what, { ...waits, atOnce, perCaller }, mayStart);
  return {
    quick: lists('lists', LIMITS.quickListsAtOnce, LIMITS.quickListsPerCaller),
    page: lists('long lists', LIMITS.pagesAtOnce, LIMITS.pagesPerCaller),
    scan: lists('counts, searches or sorted lists', LIMITS.scansAtOnce, LIMITS.scansPerCaller),
  };
}
