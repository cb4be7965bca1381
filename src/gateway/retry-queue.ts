/** Work for many devices that has to be done some time: in batches, and tried again ever later until it could be done. */
import { setTimeout as wait } from 'node:timers/promises';
import { isAway } from '../db/documents.js';
import { LIMITS } from '../model/limits.js';
import { backoffMs } from './backoff.js';

/** What could not be done of a batch, and why. */
export interface Undone<Item> {
  readonly items: readonly Item[];
  readonly error: unknown;
}

export interface RetryQueueParts<Item> {
  /** Does these; null when all is done. What it throws is true of all of them. */
  readonly run: (items: readonly Item[]) => Promise<Undone<Item> | null>;
  /** Told once for each batch that fails. */
  readonly onFailure: (details: { err: unknown; devices: number; waiting: number }) => void;
}

export interface RetryQueue<Item> {
  /** To be done after this time: the same for every item of the queue. */
  add(item: Item, afterMs?: number): void;
  /** What is left is not done. */
  stop(): Promise<void>;
}

interface Entry<Item> {
  readonly item: Item;
  readonly dueMs: number;
}

export function createRetryQueue<Item>(parts: RetryQueueParts<Item>): RetryQueue<Item> {
  const stopping = new AbortController();
  const { signal } = stopping;
  let waiting: Entry<Item>[] = [];
  let running: Promise<void> | null = null;
  const pause = (ms: number): Promise<void> => wait(ms, undefined, { signal }).catch(() => undefined);
  const runAll = async (): Promise<void> => {
    for (let failures = 0; !signal.aborted; ) {
      const [first] = waiting;
      if (first === undefined) return;
      const nowMs = performance.now();
      if (first.dueMs > nowMs) {
        await pause(first.dueMs - nowMs);
        continue;
      }
      const batch = takeDue(waiting, nowMs);
      const undone = await runBatch(parts, batch);
      failures = undone === null ? 0 : failures + 1;
      if (undone === null || signal.aborted) continue;
      const left = new Set(undone.items);
      waiting = batch.filter(({ item }) => left.has(item)).concat(waiting);
      parts.onFailure({ err: undone.error, devices: left.size, waiting: waiting.length });
      await pause(backoffMs(failures));
    }
  };
  return {
    add(item, afterMs = 0) {
      if (signal.aborted) return;
      waiting.push({ item, dueMs: performance.now() + afterMs });
      running ??= runAll().finally(() => {
        running = null;
      });
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** The entries whose time has come, as many as go together, out of the queue. */
function takeDue<Item>(waiting: Entry<Item>[], nowMs: number): Entry<Item>[] {
  const notDue = waiting.findIndex(({ dueMs }) => dueMs > nowMs);
  return waiting.splice(0, Math.min(notDue === -1 ? waiting.length : notDue, LIMITS.presenceBatch));
}

async function runBatch<Item>(
  { run }: RetryQueueParts<Item>,
  batch: readonly Entry<Item>[],
): Promise<Undone<Item> | null> {
  const items = batch.map(({ item }) => item);
  try {
    return await run(items);
  } catch (error) {
    return { items, error };
  }
}

/** Does each of them, whatever becomes of the others. */
export async function runEach<Item>(
  items: readonly Item[],
  run: (item: Item) => Promise<unknown>,
): Promise<Undone<Item> | null> {
  const outcomes = await Promise.allSettled(items.map(run));
  const failed = items.filter((_, nth) => outcomes[nth]?.status === 'rejected');
  const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  // That the database is away says most of what to do.
  return failed.length === 0 ? null : { items: failed, error: errors.find(isAway) ?? errors[0] };
}
