/** The parts of the console that are loaded when they are needed. */
import { toAddress } from './location.js';

const RETRY_MS = 2_000;

/**
 * Loads a part. If the server cannot be reached, or has other files since an upgrade, the page loads itself again as soon as it can
 * be and its address is shown: browsers do not ask again for a script that they could not load.
 */
export async function loadPart<T>(load: () => Promise<T>): Promise<T> {
  const { pathname } = location;
  try {
    return await load();
  } catch {
    do await new Promise<void>((resolve) => setTimeout(() => resolve(), RETRY_MS));
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
