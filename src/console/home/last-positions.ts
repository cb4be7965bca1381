/** Starts the search for the positions of objects whose newest packet has none: of the selected one, and of others when everything is loaded. */
import { useEffect } from 'preact/hooks';
import { loading, objects } from '../state/fleet.js';
import { isPlaceless } from '../state/places.js';
import { selectedId } from './selection.js';

/** The page is drawn first. */
const START_MS = 500;

/** Without this part, objects only stay away from the map. */
const load = () => import('./position-search.js').catch(() => null);

export function useLastPositions(): void {
  const id = selectedId.value;
  const isComplete = loading.value === 'complete';
  const isSought = id !== null && isPlaceless(objects.get(id));
  useEffect(() => {
    if (isSought) void load().then((part) => part?.searchSelected(id));
  }, [id, isSought]);
  useEffect(() => {
    if (!isComplete) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      if (isAnyMissing()) void load().then((part) => part?.searchFleet(stop.signal));
    }, START_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [isComplete]);
}

function isAnyMissing(): boolean {
  for (const object of objects.values()) if (isPlaceless(object)) return true;
  return false;
}
