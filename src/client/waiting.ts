/** Waiting: pauses that a signal ends, growing and spread; signals that end with another. */

const LONGEST_BACKOFF_MS = 30_000;

/** How long to wait before attempt `attempt` + 1: twice as long each time, and spread so that clients do not come in step. */
export function toBackoffMs(attempt: number, firstMs: number, random = Math.random()): number {
  return Math.min(LONGEST_BACKOFF_MS, firstMs * 2 ** Math.min(attempt - 1, 20)) * (0.5 + random / 2);
}

/** Resolves after the time, or when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    // A browser reports when it is online again.
    const page = globalThis as Partial<Pick<EventTarget, 'addEventListener' | 'removeEventListener'>>;
    page.addEventListener?.('online', end);
    function end(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      page.removeEventListener?.('online', end);
      resolve();
    }
  });
}

/** A controller that aborts with its parent too. `release` ends that: a parent may live for long. */
export function linkController(parent: AbortSignal | undefined): { controller: AbortController; release(): void } {
  const controller = new AbortController();
  const abort = (): void => controller.abort(parent?.reason);
  if (parent?.aborted) abort();
  parent?.addEventListener('abort', abort);
  return { controller, release: () => parent?.removeEventListener('abort', abort) };
}
