/** Layers of a map that are loaded when there is first something to show: without them, the map begins sooner. */
import type { Map as GlMap } from 'maplibre-gl';
import type { BaseMap } from './base-map.js';

export interface Layer<S> {
  show(shown: S): void;
  setDark(isDark: boolean): void;
}

type CreateLayer<S> = (map: GlMap, isDark: boolean) => Layer<S>;

/** The layer shows nothing when the page has gone on, or when the server is away. `isEmpty`: there is nothing to load it for. */
export function createLazyLayer<S>(
  { map, loaded }: BaseMap,
  load: () => Promise<CreateLayer<S>>,
  { isDark, isEmpty }: { readonly isDark: () => boolean; readonly isEmpty: (shown: S) => boolean },
): Layer<S> {
  let layer: Promise<Layer<S> | null> | undefined;
  const create = async (): Promise<Layer<S> | null> => {
    const [createLayer] = await Promise.all([load().catch(() => null), loaded]);
    return createLayer === null || !map.getContainer().isConnected ? null : createLayer(map, isDark());
  };
  return {
    show(shown): void {
      if (!isEmpty(shown)) layer ??= create();
      void layer?.then((created) => created?.show(shown));
    },
    setDark: (wanted) => void layer?.then((created) => created?.setDark(wanted)),
  };
}
