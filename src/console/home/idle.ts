/** Waits until the page has nothing else to do. */

const LOOK_MS = 50;
/** A task of so many ms is felt. */
const LONG_TASK_MS = 50;
const REST_MS = 500;
/** On a processor that is never at rest. */
const LONGEST_MS = 3_000;
const REACHES = ['pointerenter', 'pointerdown', 'wheel', 'focusin'] as const;

/** Resolves when no task was long for a while, or as soon as somebody reaches for the element. */
export function whenIdle(element: EventTarget): Promise<void> {
  return new Promise((resolve) => {
    const beginMs = performance.now();
    let [lastMs, busyMs] = [beginMs, beginMs];
    const timer = setInterval(() => {
      const nowMs = performance.now();
      if (nowMs - lastMs > LOOK_MS + LONG_TASK_MS) busyMs = nowMs;
      lastMs = nowMs;
      if (nowMs - busyMs >= REST_MS || nowMs - beginMs >= LONGEST_MS) end();
    }, LOOK_MS);
    const end = (): void => {
      clearInterval(timer);
      for (const name of REACHES) element.removeEventListener(name, end);
      resolve();
    };
    for (const name of REACHES) element.addEventListener(name, end, { passive: true });
  });
}
