/** The sound of alarms: two tones every few seconds for as long as an alarm waits, in one tab of the browser. */
import { computed, effect, signal } from '@preact/signals';
import { openAlarms, SOUND_STORED as STORED } from '../state/alarms.js';

const EVERY_MS = 4_000;
const TONES_HZ = [880, 660];
const TONE_S = 0.18;
const LOUDNESS = 0.25;

export const hasSound = signal(localStorage.getItem(STORED) !== null);
/** Browsers let a page sound only after somebody has clicked or pressed a key in it. */
export const isMuted = signal(false);
/** Whether this tab sounds right now. */
export const isSounding = signal(false);

/** Whether an alarm that nobody has acknowledged is worth a sound. */
const isCalling = computed(() => {
  for (const { isWaiting, severity } of openAlarms()) if (isWaiting && severity !== 'info') return true;
  return false;
});

let context: AudioContext | null = null;
let letGo: (() => void) | null = null;

export function setSound(isOn: boolean): void {
  if (isOn) localStorage.setItem(STORED, '1');
  else localStorage.removeItem(STORED);
  hasSound.value = isOn;
  if (isOn) play();
}

/** For as long as the page is there: it begins when this part is loaded. */
function follow(): void {
  for (const name of ['pointerdown', 'keydown']) addEventListener(name, () => void resume(), { passive: true });
  // Another tab has switched it.
  addEventListener('storage', ({ key }) => {
    if (key === STORED) hasSound.value = localStorage.getItem(STORED) !== null;
  });
  effect(() => {
    if (hasSound.value && isCalling.value) begin();
    else end();
  });
}

/** Waits until no other tab sounds. */
function begin(): void {
  if (letGo !== null) return;
  const stop = new AbortController();
  letGo = () => stop.abort();
  const sound = () =>
    new Promise<void>((resolve) => {
      if (stop.signal.aborted) return resolve();
      isSounding.value = true;
      play();
      const timer = setInterval(play, EVERY_MS);
      stop.signal.addEventListener('abort', () => {
        clearInterval(timer);
        resolve();
      });
    });
  // Not there on pages over plain HTTP: every tab sounds.
  if (navigator.locks === undefined) void sound();
  else void navigator.locks.request(STORED, { signal: stop.signal }, sound).catch(() => undefined);
}

function end(): void {
  letGo?.();
  letGo = null;
  isSounding.value = false;
}

async function resume(): Promise<void> {
  if (context?.state === 'suspended') await context.resume();
  isMuted.value = context?.state === 'suspended';
}

function play(): void {
  context ??= new AudioContext();
  isMuted.value = context.state === 'suspended';
  if (isMuted.value) return;
  for (const [index, hz] of TONES_HZ.entries()) tone(context, hz, context.currentTime + index * TONE_S);
}

function tone(audio: AudioContext, hz: number, atS: number): void {
  const oscillator = audio.createOscillator();
  const gain = audio.createGain();
  oscillator.frequency.value = hz;
  // Without a click at its ends.
  gain.gain.setValueAtTime(0, atS);
  gain.gain.linearRampToValueAtTime(LOUDNESS, atS + 0.02);
  gain.gain.setValueAtTime(LOUDNESS, atS + TONE_S - 0.04);
  gain.gain.linearRampToValueAtTime(0, atS + TONE_S);
  oscillator.connect(gain).connect(audio.destination);
  oscillator.start(atS);
  oscillator.stop(atS + TONE_S);
}

follow();
