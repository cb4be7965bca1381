/** Says that the map beneath the objects is not there, for as long as it is not, and asks for it again. */
import { effect, type Signal, signal } from '@preact/signals';
import type { ErrorEvent, Map as GlMap, MapSourceDataEvent } from 'maplibre-gl';
import { t } from '../text/language.js';
import { GROUND } from './basemap.js';

const RETRY_MS = 30_000;

export interface TileWatch {
  /** The map itself could not be loaded: there is nothing to ask again for. */
  giveUp(): void;
}

/** Watches the sources of tiles that are not part of the console. */
export function watchTiles(map: GlMap, container: HTMLElement): TileWatch {
  const isMissing = signal(false);
  let isGivenUp = false;
  /** Sources of tiles that could not be loaded, until they are asked for again. */
  const failed = new Set<string>();
  let hasLoaded = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = showNote(container, isMissing);
  const retry = (): void => {
    timer = undefined;
    const again = [...failed];
    failed.clear();
    for (const id of again) reload(map, id);
  };
  map.on('error', ({ sourceId }: ErrorEvent & { readonly sourceId?: string }) => {
    if (sourceId !== undefined && isForeign(map, sourceId)) failed.add(sourceId);
  });
  map.on('sourcedata', ({ sourceId, tile }: MapSourceDataEvent) => {
    if (tile?.state === 'loaded' && isForeign(map, sourceId)) hasLoaded = true;
  });
  // Single tiles come and fail in any order: what counts is what the map lacks when it is at rest.
  map.on('idle', () => {
    if (failed.size > 0) timer ??= setTimeout(retry, RETRY_MS);
    isMissing.value = isGivenUp || failed.size > 0 || (isMissing.value && !hasLoaded);
    hasLoaded = false;
  });
  map.on('remove', () => {
    stop();
    clearTimeout(timer);
  });
  return {
    giveUp() {
      isGivenUp = true;
      isMissing.value = true;
    },
  };
}

/** A source of tiles, as MapLibre has it. */
interface TileSource {
  readonly type: string;
  /** The addresses of its tiles, once they are known. */
  readonly tiles?: readonly string[];
  /** The address that tells them. */
  readonly url?: string;
  setUrl?(url: string): void;
}

function isForeign(map: GlMap, id: string): boolean {
  const { type, tiles } = (map.getSource(id) ?? {}) as Partial<TileSource>;
  return (type === 'vector' || type === 'raster') && tiles?.[0]?.startsWith(`${GROUND.protocol}:`) !== true;
}

function reload(map: GlMap, id: string): void {
  const source = map.getSource(id) as TileSource | undefined;
  if (source?.tiles !== undefined) map.refreshTiles(id);
  else if (source?.url !== undefined) source.setUrl?.(source.url);
}

/** Returns what takes the note away. */
function showNote(container: HTMLElement, isShown: Signal<boolean>): () => void {
  const note = document.createElement('p');
  note.className = 'map-missing';
  note.setAttribute('role', 'status');
  container.append(note);
  return effect(() => {
    note.textContent = isShown.value ? t('map.missing') : '';
  });
}
