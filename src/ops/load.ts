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
  let isOver = false;
  const look = setInterval(() => {
    isOver = delayOf(histogram) > mostMs;
    histogram.reset();
  }, LIMITS.loadWindowMs).unref();
  return {
    isOver: () => isOver,
    stop() {
      clearInterval(look);
      histogram.disable();
    },
  };
}

// What is measured is the time between two turns, which are to be `loadResolutionMs` apart.
const delayOf = ({ mean }: IntervalHistogram): number =>
  Number.isFinite(mean) ? mean / 1_000_000 - LIMITS.loadResolutionMs : 0;

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
