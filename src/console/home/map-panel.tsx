/** The map beside the list. It is loaded after the first rows are there: to create it takes a processor longer than they do. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { FleetMap, FleetMapOptions, MapPlace } from '../map/fleet-map.js';
import { Icon } from '../parts/icon.js';
import { loading, objectRevision, objects, stateRevision } from '../state/fleet.js';
import { geofences, loadGeofencesOnce } from '../state/geofences.js';
import { isDark } from '../state/theme.js';
import { t } from '../text/language.js';
import { useShow } from './address.js';
import { isFiltered, place, search, selectedId, visible } from './selection.js';

const SEARCH_RESTS_MS = 400;

export function MapPanel() {
  const element = useRef<HTMLDivElement>(null);
  const map = useRef<FleetMap | null>(null);
  const state = useSignal<'loading' | 'ready' | 'impossible'>('loading');
  const show = useShow();
  const showRef = useRef(show);
  showRef.current = show;
  stateRevision.value;
  objectRevision.value;
  const hasRows = objects.size > 0 || loading.value === 'complete' || loading.value === 'failed';
  useEffect(() => {
    if (!hasRows) return;
    let isGone = false;
    const create = async (): Promise<void> => {
      map.current = await createMap(() => (isGone ? null : element.current), {
        ...{ label: t('map.label'), isDark: isDark.peek(), place: parsePlace(place.peek()) },
        onSelect: (id) => showRef.current({ object: id }),
        onMove: ({ lat, lon, zoom }) =>
          showRef.current({ at: `${lat.toFixed(5)},${lon.toFixed(5)},${zoom.toFixed(2)}` }),
      });
      // What it shows is put on it in a task of its own.
      await new Promise<void>((resolve) => setTimeout(() => resolve()));
      if (isGone) return;
      state.value = 'ready';
      void loadGeofencesOnce();
    };
    void create().catch(() => {
      state.value = 'impossible';
    });
    return () => {
      isGone = true;
      map.current?.remove();
    };
  }, [hasRows]);
  const shown = useShown();
  useEffect(() => map.current?.update(shown));
  useEffect(() => map.current?.setDark(isDark.value), [isDark.value, state.value]);
  useEffect(() => map.current?.showGeofences(geofences.value ?? []), [geofences.value, state.value]);
  useEffect(() => map.current?.select(selectedId.value), [selectedId.value, state.value]);
  return (
    <div class="stage">
      <div ref={element} class="map" />
      {state.value === 'impossible' && <p class="map-note">{t('map.impossible')}</p>}
      <MapButtons map={map} />
      <p class="attribution">Natural Earth, GeoNames · MapLibre</p>
    </div>
  );
}

/** What the list shows, or null for everything; not before the search rests, because keys would wait for a large map to be drawn. */
function useShown(): ReturnType<typeof visible.peek> | null {
  const drawnSearch = useSignal(search.value);
  useEffect(() => {
    const timer = setTimeout(() => {
      drawnSearch.value = search.value;
    }, SEARCH_RESTS_MS);
    return () => clearTimeout(timer);
  }, [search.value]);
  const shown = useRef<ReturnType<typeof visible.peek> | null>(null);
  if (search.value === drawnSearch.value) shown.current = isFiltered.value ? visible.value : null;
  return shown.current;
}

/** The map that this browser can draw; null if its element is gone meanwhile. */
async function createMap(find: () => HTMLElement | null, options: FleetMapOptions): Promise<FleetMap | null> {
  const { createFleetMap } = await import('../map/fleet-map.js');
  const element = find();
  try {
    return element && createFleetMap(element, options);
  } catch {
    // Without WebGL. To ask for it beforehand would take half as long as the map.
    const { createCanvasMap } = await import('../map/canvas-map.js');
    const again = find();
    return again && createCanvasMap(again, options);
  }
}

/** `48.1,11.5,9` as the address says it; null for anything else. */
function parsePlace(text: string | null): MapPlace | null {
  const [lat, lon, zoom] = (text ?? '').split(',').map(Number);
  if (text === null || lat === undefined || lon === undefined || zoom === undefined) return null;
  const isValid = Math.abs(lat) <= 85 && Math.abs(lon) <= 180 && zoom >= 0 && zoom <= 24;
  return isValid ? { lat, lon, zoom } : null;
}

function MapButtons({ map }: { map: { readonly current: FleetMap | null } }) {
  return (
    <div class="map-buttons">
      <button type="button" aria-label={t('map.zoomIn')} onClick={(event) => map.current?.zoomBy(1, event)}>
        <Icon name="plus" />
      </button>
      <button type="button" aria-label={t('map.zoomOut')} onClick={(event) => map.current?.zoomBy(-1, event)}>
        <Icon name="minus" />
      </button>
      <button type="button" aria-label={t('map.fit')} onClick={() => map.current?.showAll()}>
        <Icon name="fit" />
      </button>
    </div>
  );
}
