/** The current time, once a second, for everything that shows an age. It rests while the page is hidden. */
import { signal } from '@preact/signals';

const SECOND_MS = 1_000;

export const nowMs = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    if (!document.hidden) nowMs.value = Date.now();
  }, SECOND_MS);
  document.addEventListener('visibilitychange', () => {
    nowMs.value = Date.now();
  });
}
