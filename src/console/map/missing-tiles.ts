/** Says that the map beneath the objects is not there, for as long as it is not, and asks for it again. */
import { effect, type Signal, signal } from '@preact/signals';
import type { ErrorEvent, Map as GlMap, MapSourceDataEvent, Tile } from 'maplibre-gl';
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
  /** What could not be loaded, until it is asked for again: tiles of sources, or the address that tells the tiles. */
  const failed = new Map<string, TileId[]>();
  /** Whether anything was loaded after the last failure. */
  let hasLoaded = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = showNote(container, isMissing);
  const retry = (): void => {
    timer = undefined;
    const again = [...failed];
    failed.clear();
    for (const [id, tiles] of again) reload(map, id, tiles);
    // Of tiles that have left the view nothing is asked for: the map comes to rest without them.
    map.triggerRepaint();
  };
  map.on('error', ({ sourceId, tile }: ErrorEvent & { readonly sourceId?: string; readonly tile?: Tile }) => {
    if (sourceId === undefined || !isForeign(map, sourceId)) return;
    hasLoaded = false;
    const tiles = failed.get(sourceId) ?? [];
    failed.set(sourceId, tiles);
    if (tile !== undefined) tiles.push(tile.tileID.canonical);
  });
  map.on('sourcedata', ({ sourceId, tile }: MapSourceDataEvent) => {
    if (tile?.state === 'loaded' && isForeign(map, sourceId)) hasLoaded = true;
  });
  // Single tiles come and fail in any order: what counts is what the map lacks when it is at rest.
  map.on('idle', () => {
    if (failed.size > 0) timer ??= setTimeout(retry, RETRY_MS);
    isMissing.value = isGivenUp || failed.size > 0 || (isMissing.value && !hasLoaded);
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

type TileId = Tile['tileID']['canonical'];

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

/** Asks again for tiles, or, where none was asked for, for the address that tells them. */
function reload(map: GlMap, id: string, tiles: TileId[]): void {
  const source = map.getSource(id) as TileSource;
  if (tiles.length === 0) source.setUrl?.(source.url as string);
  // Without their names, MapLibre 6 waits for the request of a vector tile that has failed; with them, it draws a picture that is not there.
  else map.refreshTiles(id, source.type === 'vector' ? tiles : undefined);
}

/** Returns what takes the note away. */
function showNote(container: HTMLElement, isShown: Signal<boolean>): () => void {
  const note = document.createElement('p');
  note.className = 'map-missing';
  note.role = 'status';
  container.append(note);
  return effect(() => {
    note.textContent = isShown.value ? t('map.missing') : '';
  });
}
