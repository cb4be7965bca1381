/** Data that a page fetches when it opens. */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
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
  const latest = useSignal(0);
  const reload = async (): Promise<void> => {
    const mine = ++latest.value;
    try {
      const fetched = await fetchData();
      if (mine !== latest.peek()) return;
      data.value = fetched;
      error.value = null;
    } catch (thrown) {
      if (mine === latest.peek()) error.value = thrown;
    }
  };
  useEffect(() => {
    void reload();
  }, inputs);
  // The page must not keep what it says of a server that is back.
  useEffect(() => {
    const failed = error.peek();
    if (!isOffline.value && failed instanceof VigilError && failed.status === 0) void reload();
  }, [isOffline.value]);
  return { data, error, reload };
}
