/** The parts of the console that are loaded when they are needed. */
import { type Signal, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { pause } from '../../client/waiting.js';
import { toAddress, toPath } from './location.js';
import { write } from './write.js';

const RETRY_MS = 2_000;
/** How often the page is loaded again for a script at most: where that does not help, it must not go on doing so. */
const RELOAD_PAUSE_MS = 60_000;
const RELOADED = 'vigil.reloaded';

/** The path of a page that could not be loaded, because the server cannot be reached. */
export const missingPage = signal<string | null>(null);

/** Loads the part that is a page, or a tab of one: without it there is nothing to show at its address. */
export const loadPage = <T>(load: () => Promise<T>): Promise<T> =>
  loadPart(() =>
    load().catch((error: unknown) => {
      if (mayBeMissing(error)) missingPage.value = toPath(location.pathname);
      throw error;
    }),
  );

/**
 * Loads a part. If the server cannot be reached, or has other files since an upgrade, the page loads itself again as soon as it can
 * be and its address is shown: browsers do not ask again for a script that they could not load. Throws what a script throws that
 * was loaded.
 */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  const { pathname } = location;
  try {
    return await load();
  } catch (error) {
    if (!mayBeMissing(error)) throw error;
    const sinceMs = Date.now() - Number(sessionStorage.getItem(RELOADED));
    let pauseMs = sinceMs >= 0 && sinceMs < RELOAD_PAUSE_MS ? RELOAD_PAUSE_MS - sinceMs : RETRY_MS;
    do {
      await pause(pauseMs, new AbortController().signal);
      pauseMs = RETRY_MS;
    } while (location.pathname !== pathname || !(await isServerThere()));
    sessionStorage.setItem(RELOADED, String(Date.now()));
    location.reload();
    return new Promise(() => undefined);
  }
}

/** A part, when the texts that it alone needs are there. */
export const withTextsOf = <T extends { loadOwnTexts(): Promise<void> }>(part: T): Promise<T> =>
  part.loadOwnTexts().then(() => part);

/** A part that is loaded when it is first needed, and kept in the signal; null until it is there. */
export function usePart<T>(part: Signal<T | null>, load: () => Promise<T>, isNeeded = true): T | null {
  useEffect(() => {
    if (isNeeded && part.peek() === null) void loadPart(load).then(write(part));
  }, [isNeeded]);
  return part.value;
}

/** Browsers say so of a file that is not there, and scripts of some of their own errors. */
const mayBeMissing = (error: unknown): boolean => error instanceof TypeError;

const isServerThere = (): Promise<boolean> =>
  fetch(toAddress('/')).then(
    ({ ok }) => ok,
    () => false,
  );
