/** Waits for a state, in place of fixed sleeps. */
import { setTimeout as wait } from 'node:timers/promises';

/** Long enough for a machine that other processes keep busy: benchmarks measure how fast something happens, tests that it happens. */
const TIMEOUT_MS = 60_000;

/** Resolves when the condition holds; throws the description of the condition when it does not hold in time. */
export async function until(
  condition: () => unknown,
  what = String(condition),
  timeoutMs = TIMEOUT_MS,
  pauseMs = 5,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await wait(pauseMs);
  }
}
