/** The map beside the list. A sketch of it is there with the first rows; to create the map itself takes a processor longer than they do. */
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { MapPlace } from '../map/camera.js';
import type { FleetMap, FleetMapOptions } from '../map/fleet-map.js';
import { Icon } from '../parts/icon.js';
import { loading, objectRevision, objects, stateRevision } from '../state/fleet.js';
import { geofences, loadGeofencesOnce } from '../state/geofences.js';
import { isDark } from '../state/theme.js';
import { t } from '../text/language.js';
import { useShow } from './address.js';
import { type MapStart, type MapState, startMap } from './map-start.js';
import { isFiltered, place, search, selectedId, visible } from './selection.js';

const SEARCH_RESTS_MS = 400;

export function MapPanel() {
  const element = useRef<HTMLDivElement>(null);
  const started = useRef<MapStart | null>(null);
  const state = useSignal<MapState>('loading');
  const show = useShow();
  const showRef = useRef(show);
  showRef.current = show;
  stateRevision.value;
  objectRevision.value;
  const hasRows = objects.size > 0 || loading.value === 'complete' || loading.value === 'failed';
  useEffect(() => {
    if (!hasRows || element.current === null) return;
    const options: FleetMapOptions = {
      ...{ label: t('map.label'), isDark: isDark.peek(), place: parsePlace(place.peek()) },
      onSelect: (id) => showRef.current({ object: id }),
      onMove: ({ lat, lon, zoom }) => showRef.current({ at: `${lat.toFixed(5)},${lon.toFixed(5)},${zoom.toFixed(2)}` }),
    };
    const start = startMap(element.current, options, (reached) => {
      state.value = reached;
      if (reached === 'ready') void loadGeofencesOnce();
    });
    started.current = start;
    return () => start.remove();
  }, [hasRows]);
  const shown = useShown();
  const picture = () => started.current?.picture;
  // Before the objects are put on the map: it begins at the selected one.
  useEffect(() => picture()?.select(selectedId.value), [selectedId.value, state.value]);
  useEffect(() => picture()?.update(shown));
  const use = useWhenReady(started, state.value);
  useEffect(() => picture()?.setDark(isDark.value), [isDark.value, state.value]);
  useEffect(() => started.current?.map?.showGeofences(geofences.value ?? []), [geofences.value, state.value]);
  return (
    <div class="stage">
      <div ref={element} class="map" />
      {state.value === 'impossible' && <p class="map-note">{t('map.impossible')}</p>}
      <MapButtons onUse={use} />
      <p class="attribution">Natural Earth, GeoNames · MapLibre</p>
    </div>
  );
}

type MapUse = (map: FleetMap) => void;

/** Does something with the map; when it shows the objects, if that is later. Only the last such wish counts. */
function useWhenReady(started: { readonly current: MapStart | null }, state: MapState): (wish: MapUse) => void {
  const waiting = useRef<MapUse | null>(null);
  useEffect(() => {
    const map = started.current?.map;
    if (!map || waiting.current === null) return;
    waiting.current(map);
    waiting.current = null;
  }, [state]);
  return (wish) => {
    const map = started.current?.map;
    if (map) wish(map);
    else waiting.current = wish;
  };
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

/** `48.1,11.5,9` as the address says it; null for anything else. */
function parsePlace(text: string | null): MapPlace | null {
  const [lat, lon, zoom] = (text ?? '').split(',').map(Number);
  if (text === null || lat === undefined || lon === undefined || zoom === undefined) return null;
  const isValid = Math.abs(lat) <= 85 && Math.abs(lon) <= 180 && zoom >= 0 && zoom <= 24;
  return isValid ? { lat, lon, zoom } : null;
}

function MapButtons({ onUse }: { onUse: (wish: MapUse) => void }) {
  return (
    <div class="map-buttons">
      <button type="button" aria-label={t('map.zoomIn')} onClick={(event) => onUse((map) => map.zoomBy(1, event))}>
        <Icon name="plus" />
      </button>
      <button type="button" aria-label={t('map.zoomOut')} onClick={(event) => onUse((map) => map.zoomBy(-1, event))}>
        <Icon name="minus" />
      </button>
      <button type="button" aria-label={t('map.fit')} onClick={() => onUse((map) => map.showAll())}>
        <Icon name="fit" />
      </button>
    </div>
  );
}
