/** Measures how long work keeps the process busy, and yields to the event loop in between. */
import { setImmediate as yieldTurn } from 'node:timers/promises';
import { LIMITS } from '../core/limits.js';

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
  const startMs = performance.now();
  let sinceMs: number | null = startMs;
  let busyMs: number = 0;
  const pause = (): void => {
    if (sinceMs !== null) busyMs += performance.now() - sinceMs;
    sinceMs = null;
  };
  const resume = (): void => {
    sinceMs = performance.now();
  };
  const yieldNow = async (): Promise<void> => {
    pause();
    await yieldTurn();
    resume();
  };
  return {
    pause,
    resume,
    yieldIfLong: () => (sinceMs !== null && performance.now() - sinceMs > LIMITS.turnMs ? yieldNow() : undefined),
    busyMs: () => busyMs + (sinceMs === null ? 0 : performance.now() - sinceMs),
    elapsedMs: () => performance.now() - startMs,
  };
}
