/** Data that a page fetches when it opens. */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { isOffline, VigilError } from './api.js';
import { serverNowMs } from './clock.js';

export interface Fetched<T> {
  readonly data: Signal<T | null>;
  readonly error: Signal<unknown>;
  /** When the data was current, if the server cannot be reached now, and this is what was seen before; null otherwise. */
  readonly seenMs: Signal<number | null>;
  /** Fetches again, and keeps what is shown meanwhile. */
  readonly reload: () => Promise<void>;
}

/** What pages have fetched under a name, and when. */
const seen = new Map<string, readonly [data: unknown, atMs: number]>();
/** Whoever searches for more loses what was seen. */
const MOST_SEEN = 40;

/** Keeps what is current now under a name. */
export function keepSeen(name: string, data: unknown): void {
  if (seen.size > MOST_SEEN) seen.clear();
  seen.set(name, [data, serverNowMs()]);
}

/** What was kept under a name, and until when it was current, if this failure says that the server cannot be reached. */
export function findSeen<T>(name: string, error: unknown): readonly [data: T, atMs: number] | undefined {
  return isUnreachable(error) ? (seen.get(name) as readonly [T, number] | undefined) : undefined;
}

const isUnreachable = (error: unknown): boolean => error instanceof VigilError && error.status === 0;

/**
 * Fetches when the component appears, and whenever one of `inputs` changes. Under a `name`, what was fetched before is shown while the
 * server cannot be reached.
 */
export function useFetched<T>(
  fetchData: () => Promise<T>,
  inputs: readonly unknown[] = [],
  name: string | null = null,
): Fetched<T> {
  const data = useSignal<T | null>(null);
  const error = useSignal<unknown>(null);
  const seenMs = useSignal<number | null>(null);
  const asked = useRef(0);
  /** Answers to requests before this one are out of date. */
  const oldest = useRef(0);
  const reload = async (): Promise<void> => {
    const mine = ++asked.current;
    // An answer is shown although another one is awaited: where they take longer than until the next request, none would be shown.
    const isNewer = (): boolean => {
      if (mine < oldest.current) return false;
      oldest.current = mine;
      return true;
    };
    try {
      const fetched = await fetchData();
      if (!isNewer()) return;
      if (name !== null) keepSeen(name, fetched);
      data.value = fetched;
      seenMs.value = error.value = null;
    } catch (thrown) {
      if (!isNewer()) return;
      error.value = thrown;
      if (name === null || !isUnreachable(thrown)) return;
      const [before, atMs] = findSeen<T>(name, thrown) ?? [null, null];
      data.value = before;
      seenMs.value = atMs;
    }
  };
  useEffect(() => {
    oldest.current = asked.current + 1;
    void reload();
  }, inputs);
  useServerReturn(error, () => void reload());
  return { data, error, seenMs, reload };
}

/** Calls the function when a server is back that could not be reached: the page must not keep what it says of it. */
export function useServerReturn(error: Signal<unknown>, again: () => void): void {
  useEffect(() => {
    if (!isOffline.value && isUnreachable(error.peek())) again();
  }, [isOffline.value]);
}
