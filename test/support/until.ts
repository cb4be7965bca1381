/** Waits for a state, in place of fixed sleeps. */
import { setTimeout as wait } from 'node:timers/promises';

/** Long enough for a machine that other processes keep busy: benchmarks measure how fast something happens, tests that it happens. */
const TIMEOUT_MS = 60_000;
/** A condition often is a request: who has waited long asks less often, and leaves the core to what it waits for. */
const PAUSE_SHARE = 1 / 8;
/** A round counts no longer: the machine may have stood still, and then nothing that is waited for has happened meanwhile. */
const LONGEST_ROUND_MS = 10_000;
const LONGEST_PAUSE_MS = 50;

/** Resolves when the condition holds; throws the description of the condition when it does not hold in time. */
export async function until(
  condition: () => unknown,
  what = String(condition),
  timeoutMs = TIMEOUT_MS,
  pauseMs = 5,
): Promise<void> {
  let waitedMs = 0;
  for (let beganMs = performance.now(); !(await condition()); ) {
    const nowMs = performance.now();
    waitedMs += Math.min(nowMs - beganMs, LONGEST_ROUND_MS);
    beganMs = nowMs;
    if (waitedMs > timeoutMs) throw new Error(`waited ${timeoutMs} ms in vain: ${what}`);
    await wait(Math.max(pauseMs, Math.min(waitedMs * PAUSE_SHARE, LONGEST_PAUSE_MS)));
  }
}

/** Repeats an assertion until it holds; throws its last failure, in jest's own words, when it does not hold in time. */
export async function eventually(assertion: () => Promise<void>): Promise<void> {
  let failure: unknown;
  const holds = () =>
    assertion().then(
      () => true,
      (error: unknown) => {
        failure = error;
        return false;
      },
    );
  await until(holds, 'the assertion').catch((error: unknown) => {
    throw failure ?? error;
  });
}
