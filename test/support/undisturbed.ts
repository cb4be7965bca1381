/** Checks of what happens, or does not, within a time that the service counts. */
import { setImmediate as turn } from 'node:timers/promises';

const TRIES = 10;
const CHECK_MS = 10;

/**
 * Runs a check of what holds as long as clients are in time: they run in this process, and are late when it stands still. A check
 * that fails is run again, with its number, if the process stood still for so long meanwhile, which proves nothing.
 */
export async function undisturbed(stallMs: number, check: (attempt: number) => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const stalls = watchStalls();
    try {
      await check(attempt);
      return;
    } catch (error) {
      // Timers are called before what arrived during a stall is read: the one that measures it, too.
      await turn();
      if (stalls.longestMs() < stallMs || attempt === TRIES) throw error;
    } finally {
      stalls.stop();
    }
  }
}

function watchStalls(): { longestMs(): number; stop(): void } {
  let lastMs = performance.now();
  let longestMs = 0;
  const look = (): void => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
  };
  const timer = setInterval(look, CHECK_MS);
  return {
    longestMs() {
      look();
      return longestMs;
    },
    stop: () => clearInterval(timer),
  };
}
