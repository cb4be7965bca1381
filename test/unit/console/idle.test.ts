/** When the page has nothing else to do. */
import { expect, test } from '@jest/globals';
import { whenIdle } from '../../../src/console/home/idle.js';

/** Whether it has resolved by the next turn of the event loop. */
const hasResolved = (waiting: Promise<void>): Promise<boolean> =>
  Promise.race([waiting.then(() => true), new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))]);

test.each(['pointerenter', 'pointerdown', 'wheel', 'focusin'])('ends at the first input: %s', async (name) => {
  const element = new EventTarget();
  const waiting = whenIdle(element);
  expect(await hasResolved(waiting)).toBe(false);
  element.dispatchEvent(new Event(name));
  expect(await hasResolved(waiting)).toBe(true);
});

test('waits as long as tasks are long, and ends when none is', async () => {
  let tasks = 0;
  const busy = setInterval(() => {
    tasks++;
    const untilMs = performance.now() + 150;
    while (performance.now() < untilMs);
  });
  const waiting = whenIdle(new EventTarget());
  // Longer than the rest that it waits for.
  while (tasks < 7) expect(await hasResolved(waiting)).toBe(false);
  clearInterval(busy);
  await waiting;
});
