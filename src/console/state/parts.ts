/** The parts of the console that are loaded when they are needed. */
import { signal } from '@preact/signals';
import { pause } from '../../client/waiting.js';
import { toAddress, toPath } from './location.js';

const RETRY_MS = 2_000;

/** The path of a page that could not be loaded, because the server cannot be reached. */
export const missingPage = signal<string | null>(null);

/** Loads the part that is a page, or a tab of one: without it there is nothing to show at its address. */
export const loadPage = <T>(load: () => Promise<T>): Promise<T> =>
  loadPart(() =>
    load().catch((error: unknown) => {
      missingPage.value = toPath(location.pathname);
      throw error;
    }),
  );

/**
 * Loads a part. If the server cannot be reached, or has other files since an upgrade, the page loads itself again as soon as it can
 * be and its address is shown: browsers do not ask again for a script that they could not load.
 */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  const { pathname } = location;
  try {
    return await load();
  } catch {
    do await pause(RETRY_MS, new AbortController().signal);
    while (location.pathname !== pathname || !(await isServerThere()));
    location.reload();
    return new Promise(() => undefined);
  }
}

const isServerThere = (): Promise<boolean> =>
  fetch(toAddress('/')).then(
    ({ ok }) => ok,
    () => false,
  );
