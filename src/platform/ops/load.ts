/** Measures load: of the process by the delay of its event loop, of each caller in points. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { tooManyRequests } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';

export interface Load {
  /** Whether the process is so busy that it should refuse the most expensive requests. */
  isOverloaded(): boolean;
  /** Consumes points of the caller; throws 429 beyond the limit. Null without a limit. */
  readonly consume: ((caller: string, points: number) => Promise<void>) | null;
  stop(): void;
}

/** `delayMs` is the mean delay of the event loop from which the process counts as overloaded. 0 disables either limit. */
export function createLoad({ delayMs, pointsPerSecond }: { delayMs: number; pointsPerSecond: number }): Load {
  const delay = delayMs === 0 ? null : watchDelay(delayMs);
  return {
    isOverloaded: delay?.isOver ?? (() => false),
    consume: pointsPerSecond === 0 ? null : createConsume(pointsPerSecond),
    stop: () => delay?.stop(),
  };
}

function watchDelay(maxMs: number): { isOver(): boolean; stop(): void } {
  const histogram = monitorEventLoopDelay({ resolution: LIMITS.loadResolutionMs });
  histogram.enable();
  // A single stall, however long, is over when it is measured: only continued delay is a reason to refuse.
  let overloadedWindows = 0;
  let before = { iterations: 0, atMs: performance.now() };
  const timer = setInterval(() => {
    const now = { iterations: histogram.count, atMs: performance.now() };
    const iterations = now.iterations - before.iterations;
    // This timer may come before that of the histogram: what nothing was measured of belongs to the next window.
    if (iterations === 0) return;
    // The iterations of the histogram's timer are meant to be `loadResolutionMs` apart. Not the mean of what it has measured: two that
    // follow each other within one turn of the event loop would be a window without delay.
    const delayMs = (now.atMs - before.atMs) / iterations - LIMITS.loadResolutionMs;
    overloadedWindows = delayMs > maxMs ? overloadedWindows + 1 : 0;
    before = now;
  }, LIMITS.loadWindowMs).unref();
  return {
    isOver: () => overloadedWindows >= LIMITS.loadWindows,
    stop() {
      clearInterval(timer);
      histogram.disable();
    },
  };
}

function createConsume(pointsPerSecond: number): (caller: string, points: number) => Promise<void> {
  const durationS = LIMITS.rateWindowMs / 1_000;
  const limiter = new RateLimiterMemory({ points: pointsPerSecond * durationS, duration: durationS });
  return async (caller, points) => {
    try {
      await limiter.consume(caller, points);
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      throw tooManyRequests(error.msBeforeNext / 1_000, 'the caller has exceeded RATE_LIMIT');
    }
  };
}
