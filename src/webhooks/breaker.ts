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
  /** Somebody wants a message sent now: forgets the failures, so that it is. */
  reset(): void;
  stop(): void;
}

/** `onFree` is called when a message may be sent again. */
export function createBreaker(onFree: () => void): Breaker {
  let failures = 0;
  let probeMs = 0;
  let closedUntilMs = 0;
  let probe: BreakerAttempt | null = null;
  let timer: Timer | undefined;
  const isOpen = (): boolean => failures >= LIMITS.webhookBreakerFailures;
  const rest = (ms: number): void => {
    closedUntilMs = Math.max(closedUntilMs, clock.steadyMs() + ms);
    clock.clearTimer(timer);
    timer = clock.setTimeout(onFree, Math.ceil(closedUntilMs - clock.steadyMs()) + 1).unref();
  };
  const start = (): BreakerAttempt => {
    const attempt: BreakerAttempt = {
      succeeded() {
        const wasOpen = isOpen();
        [failures, probeMs, probe] = [0, 0, null];
        if (!wasOpen) return;
        closedUntilMs = 0;
        onFree();
      },
      failed(retryAfterMs) {
        failures++;
        const wasProbe = probe === attempt;
        if (wasProbe) probe = null;
        // A request that was sent before the receiver failed says nothing of the probe that is under way.
        if (isOpen() && (wasProbe || probeMs === 0)) {
          probeMs = Math.min(LIMITS.webhookProbeMaxMs, probeMs === 0 ? LIMITS.webhookProbeMs : 2 * probeMs);
          rest(probeMs * (0.8 + 0.4 * clock.random()));
        }
        if (retryAfterMs !== null) rest(retryAfterMs);
      },
      gaveUp() {
        if (probe === attempt) probe = null;
      },
    };
    if (isOpen()) probe = attempt;
    return attempt;
  };
  return {
    mayStart: () => clock.steadyMs() >= closedUntilMs && !(isOpen() && probe !== null),
    start,
    isOpen,
    reset() {
      clock.clearTimer(timer);
      [failures, probeMs, closedUntilMs, probe] = [0, 0, 0, null];
      onFree();
    },
    stop: () => clock.clearTimer(timer),
  };
}
