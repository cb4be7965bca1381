/** Measures how long work keeps the process busy, and yields to the event loop in between. */

import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';

export interface TurnClock {
  /** Yields if the current turn was long. */
  yieldIfLong(): Promise<void> | undefined;
  /** Call this after a wait: the wait does not count as work. */
  resume(): void;
  /** Call this before a wait. */
  pause(): void;
  /** The time of work so far, ms. */
  busyMs(): number;
  /** The time since the beginning, ms. */
  elapsedMs(): number;
}

export function startTurnClock(): TurnClock {
  const startMs = clock.steadyMs();
  let sinceMs: number | null = startMs;
  let busyMs: number = 0;
  const pause = (): void => {
    if (sinceMs !== null) busyMs += clock.steadyMs() - sinceMs;
    sinceMs = null;
  };
  const resume = (): void => {
    sinceMs = clock.steadyMs();
  };
  const yieldNow = async (): Promise<void> => {
    pause();
    await clock.nextTurn();
    resume();
  };
  return {
    pause,
    resume,
    yieldIfLong: () => (sinceMs !== null && clock.steadyMs() - sinceMs > LIMITS.turnMs ? yieldNow() : undefined),
    busyMs: () => busyMs + (sinceMs === null ? 0 : clock.steadyMs() - sinceMs),
    elapsedMs: () => clock.steadyMs() - startMs,
  };
}
