/** Waits for a condition, bounded: instead of fixed sleeps. */
import { setTimeout as wait } from 'node:timers/promises';

/** Resolves when the condition holds; throws, with what was waited for, when it does not within the time. */
export async function until(
  condition: () => unknown,
  what = String(condition),
  timeoutMs = 10_000,
  pauseMs = 5,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await wait(pauseMs);
  }
}
