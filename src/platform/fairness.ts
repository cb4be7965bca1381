/** Creates the queues and budgets that divide shared resources fairly among callers. */

import { LIMITS } from '../core/limits.js';
import type { ListCost } from '../core/list.js';
import { type Budget, createBudget } from './budget.js';
import { clock } from './clock.js';
import { createFairQueue, type FairQueue } from './fair-queue.js';

export interface Fairness {
  readonly listQueues: Readonly<Record<ListCost, FairQueue>>;
  /** Answers that are not sent yet. */
  readonly answerBudget: Budget;
  /** Bodies of requests that are not answered yet. */
  readonly bodyBudget: Budget;
  /** Writes of entities that are checked against schemas of tenants. The checks themselves also wait for `createCheckTurns`. */
  readonly checkQueue: FairQueue;
  /** Tests of webhooks, whose callers wait for the receiver. */
  readonly webhookTestQueue: FairQueue;
  /** Parsing of large bodies. */
  readonly bodyQueue: FairQueue;
  /** Parsing of very large bodies: one at a time, because their values need many times their bytes. */
  readonly hugeBodyQueue: FairQueue;
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
      reservePerCaller: LIMITS.answerReserveBytesPerCaller,
      reserve: LIMITS.answerReserveBytes,
    },
    recheckAll,
  );
  const listQueues = createListQueues((caller) => answerBudget.of(caller) < LIMITS.answerBytesWait);
  return {
    listQueues,
    answerBudget,
    bodyBudget: createBodyBudget(),
    bodyQueue: createBodyQueue(LIMITS.bigBodiesAtOnce),
    hugeBodyQueue: createBodyQueue(LIMITS.hugeBodiesAtOnce),
    checkQueue: createCheckQueue(),
    webhookTestQueue: createWebhookTestQueue(),
  };
}

const createBodyBudget = (): Budget =>
  createBudget('request bodies', {
    perCaller: LIMITS.bodyBytesPerCaller,
    inAll: LIMITS.bodyBytes,
    reservePerCaller: LIMITS.bodyReserveBytesPerCaller,
    reserve: LIMITS.bodyReserveBytes,
  });

const createBodyQueue = (atOnce: number): FairQueue =>
  createFairQueue('large bodies', {
    atOnce,
    perCaller: LIMITS.bigBodiesPerCaller,
    perTenant: tenantShareOf(atOnce),
    waiting: LIMITS.bigBodiesWaiting,
    waitingPerCaller: LIMITS.bigBodiesWaitingPerCaller,
    waitMs: LIMITS.bigBodyWaitMs,
  });

const createCheckQueue = (): FairQueue =>
  createFairQueue('entity checks', {
    atOnce: LIMITS.checksAtOnce,
    perCaller: LIMITS.checksPerCaller,
    waiting: LIMITS.checksWaiting,
    waitingPerCaller: LIMITS.checksWaitingPerCaller,
    waitMs: LIMITS.listWaitMs,
  });

const createWebhookTestQueue = (): FairQueue =>
  createFairQueue('tests of webhooks', {
    atOnce: LIMITS.webhookTestsAtOnce,
    perCaller: LIMITS.webhookTestsPerCaller,
    waiting: LIMITS.webhookTestsWaiting,
    waitingPerCaller: LIMITS.webhookTestsWaitingPerCaller,
    waitMs: LIMITS.listWaitMs,
  });

/**
 * For the checks themselves: one at a time, and a tenant rests after it, however many users it has. A check of a user waits in
 * this queue while it holds the user's place in `checkQueue`.
 */
export const createCheckTurns = (): FairQueue =>
  createFairQueue('entity checks', {
    atOnce: 1,
    perCaller: 1,
    waiting: LIMITS.checksAtOnce,
    waitingPerCaller: LIMITS.checksWaitingPerTenant,
    waitMs: LIMITS.listWaitMs,
    rests: LIMITS.checkRests,
    // A check waits for nothing: where the machine stands still, that is no work of the tenant.
    durationClock: () => clock.cpuMs(),
  });

/** For looking up the objects of subscriptions. */
export const createSubscriptionQueue = (): FairQueue =>
  createFairQueue('subscriptions', {
    atOnce: LIMITS.subscriptionsAtOnce,
    perCaller: LIMITS.subscriptionsPerCaller,
    waiting: LIMITS.subscriptionsWaiting,
    waitingPerCaller: LIMITS.subscriptionsWaitingPerCaller,
    waitMs: LIMITS.listWaitMs,
    rests: LIMITS.subscriptionPauseFactor,
  });

/** A tenant leaves a quarter of the places to others, one at least. */
const tenantShareOf = (atOnce: number): number => Math.max(1, Math.floor(atOnce * 0.75));

function createListQueues(mayStart: (caller: string) => boolean): Fairness['listQueues'] {
  const waits = {
    waiting: LIMITS.listsWaiting,
    waitingPerCaller: LIMITS.listsWaitingPerCaller,
    waitMs: LIMITS.listWaitMs,
  };
  const lists = (name: string, atOnce: number, perCaller: number): FairQueue =>
    createFairQueue(name, { ...waits, atOnce, perCaller, perTenant: tenantShareOf(atOnce) }, mayStart);
  return {
    quick: lists('lists', LIMITS.quickListsAtOnce, LIMITS.quickListsPerCaller),
    page: lists('long lists', LIMITS.pagesAtOnce, LIMITS.pagesPerCaller),
    scan: lists('counts, searches or sorted lists', LIMITS.scansAtOnce, LIMITS.scansPerCaller),
    history: lists('series', LIMITS.concurrentSeries, LIMITS.historiesReadPerCaller),
    past: lists('requests for past events', LIMITS.pastsAtOnce, LIMITS.pastsPerCaller),
    bulk: lists('bulk requests', LIMITS.bulksAtOnce, LIMITS.bulksPerCaller),
    export: lists('exports', LIMITS.exportsAtOnce, LIMITS.exportsPerCaller),
    // Without `mayStart`: unread answers must not stop a stream that has begun.
    batch: createFairQueue('batches of packets', {
      ...waits,
      atOnce: LIMITS.streamBatchesAtOnce,
      perCaller: LIMITS.streamBatchesPerCaller,
    }),
  };
}
