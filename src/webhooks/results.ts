/** Stores how attempts ended, those of one moment together. */

import { backoffMs } from '../core/backoff.js';
import { toApiError } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { type DeliveryResult, storeResults } from './deliveries.js';

const FIRST_PAUSE_MS = 50;

export interface Results {
  /** Resolves when it is stored. */
  store(result: DeliveryResult): Promise<void>;
}

interface Pending {
  readonly result: DeliveryResult;
  readonly done: () => void;
}

export function createResults({
  database,
  log,
  stopped,
}: {
  database: Database;
  log: { warn(details: object, message: string): void };
  stopped: AbortSignal;
}): Results {
  let pending: Pending[] = [];
  let isRunning = false;
  const run = async (): Promise<void> => {
    isRunning = true;
    while (pending.length > 0) {
      await clock.wait(LIMITS.webhookAckDelayMs);
      const taken = pending;
      pending = [];
      await storeAll(taken.map(({ result }) => result));
      for (const { done } of taken) done();
    }
    isRunning = false;
  };
  // Without the database nothing is sent for long, so that little can wait here.
  const storeAll = async (results: readonly DeliveryResult[]): Promise<void> => {
    for (let failures = 0; ; failures++) {
      try {
        return await storeResults(database, results);
      } catch (error) {
        const details = { err: error, results: results.length };
        if (toApiError(error).status !== 503 || stopped.aborted) {
          return log.warn(details, 'failed to store results of webhooks; their messages may be sent again');
        }
        log.warn(details, 'failed to store results of webhooks; retrying');
        await clock.wait(backoffMs(failures + 1, FIRST_PAUSE_MS, LIMITS.databaseRetryPauseMaxMs, clock.random()));
      }
    }
  };
  return {
    store: (result) =>
      new Promise((done) => {
        pending.push({ result, done });
        if (!isRunning) void run();
      }),
  };
}
