/** The life of the service: what was begun ends in reverse order, once; what cannot be yet is tried until it can. */
import { setTimeout as wait } from 'node:timers/promises';
import { toApiError } from '../errors.js';
import { LIMITS } from '../model/limits.js';

type Ending = () => unknown;

export interface Life {
  /** Endings of what was just begun: the last one is the first to run. */
  push(...endings: Ending[]): void;
  /** Work that goes on by itself and may push endings: the end waits for it. */
  during(work: Promise<unknown>): void;
  /** Aborted when the end begins. */
  readonly ending: AbortSignal;
  /** Can be called again. */
  end(): Promise<void>;
}

export function createLife(): Life {
  const endings: Ending[] = [];
  const ending = new AbortController();
  let work: Promise<unknown> = Promise.resolve();
  let ended: Promise<void> | undefined;
  const run = async (): Promise<void> => {
    ending.abort();
    await work;
    for (let last = endings.pop(); last !== undefined; last = endings.pop()) await last();
  };
  return {
    push: (...more) => void endings.push(...more),
    during(more) {
      work = Promise.allSettled([work, more]);
    },
    ending: ending.signal,
    end() {
      ended ??= run();
      return ended;
    },
  };
}

/** A promise, and what fulfils it. */
export function later<T>(): [Promise<T>, (value: T | Promise<T>) => void] {
  let fulfil: (value: T | Promise<T>) => void = () => undefined;
  const promise = new Promise<T>((resolve) => {
    fulfil = resolve;
  });
  return [promise, fulfil];
}

/** Tries until it works, telling each time that the database is away. What no waiting mends is thrown. */
export async function whenThere<T>(
  attempt: () => Promise<T>,
  { signal, onAway }: { signal: AbortSignal; onAway: (error: unknown) => void },
): Promise<T> {
  for (let failures = 0; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      if (toApiError(error).status !== 503 || signal.aborted) throw error;
      onAway(error);
      const pauseMs = Math.min(LIMITS.awayPauseMaxMs, 100 * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2);
      await wait(pauseMs, undefined, { signal });
    }
  }
}
