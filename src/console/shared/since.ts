/** What comes after something was fetched, until it is fetched again. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

interface Timed {
  readonly timeMs: number;
}

/** After so many the past is fetched again. */
const FRESH = 1_000;

/** The last points that came, those before the last fetch as well; `fetches` changes when it is time for another one. */
export function useSince<T extends Timed>(point: T | null, key: string): { points: readonly T[]; fetches: number } {
  const points = useSignal<readonly T[]>([]);
  const count = useSignal(0);
  useEffect(() => {
    points.value = [];
  }, [key]);
  useEffect(() => {
    if (point === null) return;
    count.value++;
    points.value = [...points.peek(), point].slice(-2 * FRESH);
  }, [key, point?.timeMs]);
  return { points: points.value, fetches: Math.floor(count.value / FRESH) };
}
