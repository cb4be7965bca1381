/** How long work keeps the process busy; others get their turn of the event loop in between. */
import { setImmediate as yieldTurn } from 'node:timers/promises';
import { LIMITS } from '../model/limits.js';

export interface TurnClock {
  /** Gives others their turn where this one was long. */
  breathe(): Promise<void> | undefined;
  /** Work goes on after something was waited for: that time does not count. */
  resume(): void;
  /** Work stops, for something to be waited for. */
  pause(): void;
  /** The time of work so far, ms. */
  busyMs(): number;
  /** The time since the beginning, ms. */
  elapsedMs(): number;
}

export function startTurnClock(): TurnClock {
  const startMs = performance.now();
  let [sinceMs, busyMs]: [number | null, number] = [startMs, 0];
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
    ...{ pause, resume },
    breathe: () => (sinceMs !== null && performance.now() - sinceMs > LIMITS.turnMs ? yieldNow() : undefined),
    busyMs: () => busyMs + (sinceMs === null ? 0 : performance.now() - sinceMs),
    elapsedMs: () => performance.now() - startMs,
  };
}
