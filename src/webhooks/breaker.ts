/** Pauses a receiver that fails: after some failures in a row it receives only single probes, less and less often. */

import { LIMITS } from '../core/limits.js';
import { clock, type Timer } from '../platform/clock.js';

/** One attempt to send. It ends in one of three ways. */
export interface BreakerAttempt {
  succeeded(): void;
  failed(retryAfterMs: number | null): void;
  /** It ended without a result. */
  gaveUp(): void;
}

export interface Breaker {
  /** Whether a message may be sent now. */
  mayStart(): boolean;
  start(): BreakerAttempt;
  isOpen(): boolean;
  /** Somebody wants a message sent now: forgets the failures, so that it is, but not how long the receiver wants nothing. */
  reset(): void;
  stop(): void;
}

/** `onFree` is called when a message may be sent again. */
export function createBreaker(onFree: () => void): Breaker {
  let failures = 0;
  let probeMs = 0;
  /** Until when probes rest, and until when the receiver wants nothing (`Retry-After`). */
  let restsUntilMs = 0;
  let refusesUntilMs = 0;
  let probe: BreakerAttempt | null = null;
  let timer: Timer | undefined;
  const isOpen = (): boolean => failures >= LIMITS.webhookBreakerFailures;
  const closedUntilMs = (): number => Math.max(restsUntilMs, refusesUntilMs);
  const wake = (): void => {
    clock.clearTimer(timer);
    timer = clock.setTimeout(onFree, Math.ceil(closedUntilMs() - clock.steadyMs()) + 1).unref();
  };
  const start = (): BreakerAttempt => {
    const attempt: BreakerAttempt = {
      succeeded() {
        const wasOpen = isOpen();
        [failures, probeMs, probe] = [0, 0, null];
        if (!wasOpen) return;
        restsUntilMs = 0;
        refusesUntilMs = 0;
        onFree();
      },
      failed(retryAfterMs) {
        failures++;
        const wasProbe = probe === attempt;
        if (wasProbe) probe = null;
        // A request that was sent before the receiver failed says nothing of the probe that is under way.
        if (isOpen() && (wasProbe || probeMs === 0)) {
          probeMs = Math.min(LIMITS.webhookProbeMaxMs, probeMs === 0 ? LIMITS.webhookProbeMs : 2 * probeMs);
          restsUntilMs = Math.max(restsUntilMs, clock.steadyMs() + probeMs * (0.8 + 0.4 * clock.random()));
          wake();
        }
        if (retryAfterMs === null) return;
        refusesUntilMs = Math.max(refusesUntilMs, clock.steadyMs() + retryAfterMs);
        wake();
      },
      gaveUp() {
        if (probe === attempt) probe = null;
      },
    };
    if (isOpen()) probe = attempt;
    return attempt;
  };
  return {
    mayStart: () => clock.steadyMs() >= closedUntilMs() && !(isOpen() && probe !== null),
    start,
    isOpen,
    reset() {
      clock.clearTimer(timer);
      [failures, probeMs, restsUntilMs, probe] = [0, 0, 0, null];
      if (clock.steadyMs() < refusesUntilMs) wake();
      else onFree();
    },
    stop: () => clock.clearTimer(timer),
  };
}
