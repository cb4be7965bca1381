/**
 * The current time by the clock of the server, for everything that shows an age: the clock of a browser may be minutes away from it.
 * The signal changes once a second, and rests while the page is hidden.
 */
import { signal } from '@preact/signals';
import { clampOffset } from './clock-offset.js';

const SECOND_MS = 1_000;
/** By how much the clock of the browser and the time that passed may differ: a computer was asleep, or its clock was set. */
const JUMP_MS = 2_000;

/** How far the clock of the server is ahead of that of the browser. */
let offsetMs = 0;

/** The time by the clock of the server, as far as its answers and packets told it. */
export const serverNowMs = (): number => Date.now() + offsetMs;

export const nowMs = signal(serverNowMs());

/** Learns from an answer: `date` is its header, in whole seconds. */
export function learnFromAnswer(date: string | null, sentMs: number): void {
  const dateMs = Date.parse(date ?? '');
  if (Number.isNaN(dateMs)) return;
  setOffset({ leastMs: dateMs - Date.now(), mostMs: dateMs + SECOND_MS - sentMs });
}

/** Learns from the server time of a packet, in microseconds: the server is there already. */
export function learnFromPacket(timeUs: unknown): void {
  if (typeof timeUs === 'number') setOffset({ leastMs: timeUs / 1_000 - Date.now() });
}

function setOffset(bounds: { readonly leastMs: number; readonly mostMs?: number }): void {
  const next = clampOffset(offsetMs, bounds);
  if (next === offsetMs) return;
  offsetMs = next;
  nowMs.value = serverNowMs();
}

/** `askServer` sends any request: its answer tells the time when the clock of the browser was set. */
export function startClock(askServer: () => void): void {
  const passedMs = (): number => Date.now() - performance.now();
  let beforeMs = passedMs();
  const tick = (): void => {
    nowMs.value = serverNowMs();
    if (Math.abs(passedMs() - beforeMs) < JUMP_MS) return;
    beforeMs = passedMs();
    askServer();
  };
  setInterval(() => {
    if (!document.hidden) tick();
  }, SECOND_MS);
  document.addEventListener('visibilitychange', tick);
}
