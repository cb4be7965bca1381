/** Data that a page fetches when it opens. */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { isOffline, VigilError } from './api.js';

export interface Fetched<T> {
  readonly data: Signal<T | null>;
  readonly error: Signal<unknown>;
  /** Fetches again, and keeps what is shown meanwhile. */
  readonly reload: () => Promise<void>;
}

/** Fetches when the component appears, and whenever one of `inputs` changes. */
export function useFetched<T>(fetchData: () => Promise<T>, inputs: readonly unknown[] = []): Fetched<T> {
  const data = useSignal<T | null>(null);
  const error = useSignal<unknown>(null);
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
      data.value = fetched;
      error.value = null;
    } catch (thrown) {
      if (isNewer()) error.value = thrown;
    }
  };
  useEffect(() => {
    oldest.current = asked.current + 1;
    void reload();
  }, inputs);
  useServerReturn(error, () => void reload());
  return { data, error, reload };
}

/** Calls the function when a server is back that could not be reached: the page must not keep what it says of it. */
export function useServerReturn(error: Signal<unknown>, again: () => void): void {
  useEffect(() => {
    const failed = error.peek();
    if (!isOffline.value && failed instanceof VigilError && failed.status === 0) again();
  }, [isOffline.value]);
}
