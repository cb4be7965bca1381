/** A map in a page. Its code is loaded when the rest of the page is there. */
import { useSignal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { loadPart } from '../state/parts.js';
import { t } from '../text/language.js';

/** `impossible`: the browser has no WebGL. */
export type MapState = 'loading' | 'ready' | 'impossible';

interface MapView<M> {
  /** The element in which the map is drawn. */
  readonly element: RefObject<HTMLDivElement | null>;
  /** The map; null until it is ready. */
  readonly map: { readonly current: M | null };
  readonly state: MapState;
}

/** Creates a map once it is wanted. `load` resolves with the function that creates it, which throws in a browser without WebGL. */
export function useMap<M extends { remove(): void }>(
  load: () => Promise<(element: HTMLElement) => M>,
  isWanted = true,
): MapView<M> {
  const element = useRef<HTMLDivElement>(null);
  const map = useRef<M | null>(null);
  const state = useSignal<MapState>('loading');
  useEffect(() => {
    if (!isWanted) return;
    let isGone = false;
    void loadPart(load).then((create) => {
      if (isGone || element.current === null) return;
      try {
        map.current = create(element.current);
        state.value = 'ready';
      } catch {
        element.current.replaceChildren();
        state.value = 'impossible';
      }
    });
    return () => {
      isGone = true;
      map.current?.remove();
      map.current = null;
      state.value = 'loading';
    };
  }, [isWanted]);
  return { element, map, state: state.value };
}

/** Says why there is no map. */
export const NoMap = () => <p class="map-note">{t('map.impossible')}</p>;
