/** How much is asked: of the process, by the delay of its event loop; by each caller, in points. */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { tooManyRequests } from '../errors.js';
import { LIMITS } from '../model/limits.js';

export interface Load {
  /** Whether the process has so much to do that it had better leave out what costs most. */
  isOverloaded(): boolean;
  /** Puts points on a caller's account; throws 429 when there are too many. Null where nobody counts. */
  readonly charge: ((caller: string, points: number) => Promise<void>) | null;
  stop(): void;
}

/** Each limit is off at 0: `delayMs`, how late the event loop may be on average, and points of a caller in a second. */
export function createLoad({ delayMs, pointsPerSecond }: { delayMs: number; pointsPerSecond: number }): Load {
  const watched = delayMs === 0 ? null : watchDelay(delayMs);
  return {
    isOverloaded: watched?.isOver ?? (() => false),
    charge: pointsPerSecond === 0 ? null : createCharge(pointsPerSecond),
    stop: () => watched?.stop(),
  };
}

function watchDelay(mostMs: number): { isOver(): boolean; stop(): void } {
  const histogram = monitorEventLoopDelay({ resolution: LIMITS.loadResolutionMs });
  histogram.enable();
  // A single stall, however long, is over when it shows: only what goes on is a reason to refuse.
  let inARow = 0;
  let before = { turns: 0, sumMs: 0 };
  const look = setInterval(() => {
    const now = turnsOf(histogram);
    const turns = now.turns - before.turns;
    // What is measured is the time between two turns, which are to be `loadResolutionMs` apart.
    const delayMs = turns === 0 ? 0 : (now.sumMs - before.sumMs) / turns - LIMITS.loadResolutionMs;
    inARow = delayMs > mostMs ? inARow + 1 : 0;
    before = now;
  }, LIMITS.loadWindowMs).unref();
  return {
    isOver: () => inARow >= LIMITS.loadWindows,
    stop() {
      clearInterval(look);
      histogram.disable();
    },
  };
}

// A reset would forget when the last turn was: of a process whose turns are as long as a window, nothing would be known.
const turnsOf = ({ count, mean }: IntervalHistogram): { turns: number; sumMs: number } =>
  count === 0 ? { turns: 0, sumMs: 0 } : { turns: count, sumMs: (count * mean) / 1_000_000 };

function createCharge(pointsPerSecond: number): (caller: string, points: number) => Promise<void> {
  const durationS = LIMITS.rateWindowMs / 1_000;
  const limiter = new RateLimiterMemory({ points: pointsPerSecond * durationS, duration: durationS });
  return async (caller, points) => {
    try {
      await limiter.consume(caller, points);
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      throw tooManyRequests(error.msBeforeNext / 1_000, 'more than RATE_LIMIT permits a caller');
    }
  };
}
