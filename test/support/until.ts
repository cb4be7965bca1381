/** Waits for a condition, bounded: instead of fixed sleeps. */
import { setTimeout as wait } from 'node:timers/promises';

/** How fast something happens is measured by benchmarks: here it only has to happen, also on a machine that others keep busy. */
const PATIENCE_MS = 30_000;

/** Resolves when the condition holds; throws, with what was waited for, when it does not within the time. */
export async function until(
  condition: () => unknown,
  what = String(condition),
  timeoutMs = PATIENCE_MS,
  pauseMs = 5,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await wait(pauseMs);
  }
}
