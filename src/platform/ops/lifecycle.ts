/** Shuts components down once, in reverse order of their start, and retries operations until the database is available. */

import { backoffMs } from '../../core/backoff.js';
import { toApiError } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import { clock } from '../clock.js';

type ShutdownStep = () => unknown;

export interface Lifecycle {
  /** Adds shutdown steps; the last one added runs first. */
  onShutdown(...steps: ShutdownStep[]): void;
  /** Adds work in the background that may still add shutdown steps: the shutdown waits for it. */
  track(work: Promise<unknown>): void;
  /** Aborted when the shutdown begins. */
  readonly ending: AbortSignal;
  /** Idempotent. */
  end(): Promise<void>;
}

export function createLifecycle(): Lifecycle {
  const steps: ShutdownStep[] = [];
  const ending = new AbortController();
  let work: Promise<unknown> = Promise.resolve();
  let ended: Promise<void> | undefined;
  const run = async (): Promise<void> => {
    ending.abort();
    await work;
    for (let last = steps.pop(); last !== undefined; last = steps.pop()) await last();
  };
  return {
    onShutdown: (...more) => void steps.push(...more),
    track(more) {
      work = Promise.allSettled([work, more]);
    },
    ending: ending.signal,
    end() {
      ended ??= run();
      return ended;
    },
  };
}

/** A promise with its resolve function: `Promise.withResolvers` of Node.js 22. */
export function createDeferred<T>(): [Promise<T>, (value: T | Promise<T>) => void] {
  let resolvePromise: (value: T | Promise<T>) => void = () => undefined;
  const promise = new Promise<T>((resolve) => {
    resolvePromise = resolve;
  });
  return [promise, resolvePromise];
}

/** Retries while the error is a 503, with a growing pause, and reports each failure. Throws any other error. */
export async function retryUntilAvailable<T>(
  attempt: () => Promise<T>,
  { signal, onUnavailable }: { signal: AbortSignal; onUnavailable: (error: unknown) => void },
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      if (toApiError(error).status !== 503 || signal.aborted) throw error;
      onUnavailable(error);
      await clock.wait(backoffMs(failures, LIMITS.retryPauseMs, LIMITS.databaseRetryPauseMaxMs, clock.random()), {
        signal,
      });
    }
  }
}
