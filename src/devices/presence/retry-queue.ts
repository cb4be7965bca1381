/** Runs work for many devices in batches, and retries failed items with exponential backoff until they succeed. */

import { backoffMs } from '../../core/backoff.js';
import { LIMITS } from '../../core/limits.js';
import { clock } from '../../platform/clock.js';
import { isTransientError } from '../../platform/mongo/driver/errors.js';
import { createSerialRunner } from './serial-runner.js';

/** The failed items of a batch, with one error. */
export interface FailedItems<Item> {
  readonly items: readonly Item[];
  readonly error: unknown;
}

export interface RetryQueueDeps<Item> {
  /** Returns null if all items succeeded. If it throws, all items have failed. */
  readonly run: (items: readonly Item[]) => Promise<FailedItems<Item> | null>;
  /** Called once for each failed batch. */
  readonly onFailure: (details: { err: unknown; devices: number; waiting: number }) => void;
}

export interface RetryQueue<Item> {
  /** Runs the item after a delay, which must be the same for every item of the queue. */
  add(item: Item, afterMs?: number): void;
  /** Drops the remaining items. */
  stop(): Promise<void>;
}

interface Entry<Item> {
  readonly item: Item;
  readonly dueMs: number;
}

export function createRetryQueue<Item>(deps: RetryQueueDeps<Item>): RetryQueue<Item> {
  const stopping = new AbortController();
  const { signal } = stopping;
  let waiting: Entry<Item>[] = [];
  let running: Promise<void> | undefined;
  const pause = (ms: number): Promise<void> => clock.wait(ms, { signal }).catch(() => undefined);
  const runAll = async (): Promise<void> => {
    for (let failures = 0; !signal.aborted; ) {
      const [first] = waiting;
      if (first === undefined) return;
      const nowMs = clock.steadyMs();
      if (first.dueMs > nowMs) {
        await pause(first.dueMs - nowMs);
        continue;
      }
      const batch = takeDue(waiting, nowMs);
      const failed = await runBatch(deps, batch);
      failures = failed === null ? 0 : failures + 1;
      if (failed === null || signal.aborted) continue;
      const remaining = new Set(failed.items);
      waiting = batch.filter(({ item }) => remaining.has(item)).concat(waiting);
      deps.onFailure({ err: failed.error, devices: remaining.size, waiting: waiting.length });
      await pause(backoffMs(failures, LIMITS.presenceRenewMs, LIMITS.presenceRetryMaxMs, clock.random()));
    }
  };
  const start = createSerialRunner(runAll);
  return {
    add(item, afterMs = 0) {
      if (signal.aborted) return;
      waiting.push({ item, dueMs: clock.steadyMs() + afterMs });
      running = start();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Removes due entries from the queue, at most one batch. */
function takeDue<Item>(waiting: Entry<Item>[], nowMs: number): Entry<Item>[] {
  const notDue = waiting.findIndex(({ dueMs }) => dueMs > nowMs);
  return waiting.splice(0, Math.min(notDue === -1 ? waiting.length : notDue, LIMITS.presenceBatch));
}

async function runBatch<Item>(
  { run }: RetryQueueDeps<Item>,
  batch: readonly Entry<Item>[],
): Promise<FailedItems<Item> | null> {
  const items = batch.map(({ item }) => item);
  try {
    return await run(items);
  } catch (error) {
    return { items, error };
  }
}

/** Runs all items independently and collects the failed ones. */
export async function runEach<Item>(
  items: readonly Item[],
  run: (item: Item) => Promise<unknown>,
): Promise<FailedItems<Item> | null> {
  const outcomes = await Promise.allSettled(items.map(run));
  const failed = items.filter((_, index) => outcomes[index]?.status === 'rejected');
  const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  // A transient error takes precedence: callers then retry.
  return failed.length === 0 ? null : { items: failed, error: errors.find(isTransientError) ?? errors[0] };
}
