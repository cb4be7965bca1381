/** The map beside the list. It is created when the first objects with a position are there. */
import { computed, type Signal, signal, useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { MapPlace } from '../map/camera.js';
import type { FleetMap } from '../map/fleet-map.js';
import { Icon } from '../parts/icon.js';
import { type MapState, NoMap, useMap } from '../parts/map-view.js';
import { worstByObject } from '../state/alarms.js';
import { nowMs } from '../state/clock.js';
import { objectRevision, stateRevision } from '../state/fleet.js';
import { geofences, loadGeofencesOnce } from '../state/geofences.js';
import { isLost } from '../state/live.js';
import { usePart } from '../state/parts.js';
import { isDark } from '../state/theme.js';
import { write } from '../state/write.js';
import { loadTexts, t } from '../text/language.js';
import { useShow } from './address.js';
import type { Several } from './choice.js';
import { isFiltered, place, search, selectedId, visible } from './selection.js';
import { isMapWanted } from './view.js';

const SEARCH_RESTS_MS = 400;
const LOOKS_MS = 10_000;
/** The card of the selected object, with its distance from the edge. On phones it is below the map. */
const CARD_PX = 360;
const looksTurn = computed(() => Math.floor(nowMs.value / LOOKS_MS));

const choice = signal<typeof import('./choice.js') | null>(null);

const loadChoice = () => loadTexts('views').then(() => import('./choice.js'));

/** It is loaded when somebody first clicks where several objects are. */
function Choice({ several }: { several: Signal<Several | null> }) {
  const part = usePart(choice, loadChoice, several.value !== null);
  return part && <part.Choice several={several} />;
}

/** `question` is shown over the map. */
export function MapPanel({ question }: { question: ComponentChildren }) {
  const show = useShow();
  const showRef = useRef(show);
  showRef.current = show;
  const several = useSignal<Several | null>(null);
  const followed = useRef(place.peek());
  stateRevision.value;
  objectRevision.value;
  isLost.value;
  worstByObject.value;
  // Objects that send nothing become silent.
  looksTurn.value;
  const { element, map, state } = useMap(async () => {
    const { createFleetMap } = await import('../map/fleet-map.js');
    return (container) =>
      createFleetMap(container, {
        label: t('map.label'),
        isDark: isDark.peek(),
        place: parsePlace(place.peek()),
        coveredPx: () => (matchMedia('(max-width: 720px)').matches ? 0 : CARD_PX),
        onSelect: (id) => {
          several.value = null;
          showRef.current({ object: id });
        },
        onSeveral: (ids, at) => write(several)({ ids, at }),
        onMoving: () => write(several)(null),
        onMove: ({ lat, lon, zoom }) => {
          showRef.current({ at: `${lat.toFixed(5)},${lon.toFixed(5)},${zoom.toFixed(2)}` });
          followed.current = place.peek();
        },
      });
  }, isMapWanted.value);
  useOtherPlaces(map, followed);
  const shown = useShown();
  // Before the objects are put on the map: it begins at the selected one.
  useEffect(() => map.current?.select(selectedId.value), [selectedId.value, state]);
  useEffect(() => map.current?.update(shown));
  const use = useWhenReady(map, state);
  useEffect(() => map.current?.setDark(isDark.value), [isDark.value, state]);
  useEffect(() => {
    if (state === 'ready') void loadGeofencesOnce();
  }, [state]);
  useEffect(() => map.current?.showGeofences(geofences.value ?? []), [geofences.value, state]);
  return (
    <div class="stage">
      <div ref={element} class="map" />
      <Choice several={several} />
      {state === 'impossible' ? (
        <NoMap />
      ) : (
        <>
          <MapButtons onUse={use} />
          {question}
          <p class="attribution">Natural Earth, GeoNames · MapLibre</p>
        </>
      )}
    </div>
  );
}

/**
 * Goes where another address says: a saved view, or one of the history. `followed` is the place of the address where the map is, to
 * which the user may have moved it.
 */
function useOtherPlaces(map: { readonly current: FleetMap | null }, followed: { current: string | null }): void {
  useEffect(() => {
    if (place.value === followed.current) return;
    followed.current = place.value;
    map.current?.goTo(parsePlace(place.value));
  }, [place.value]);
}

type MapUse = (map: FleetMap) => void;

/** Does something with the map, as soon as it is ready. Of several things before that, only the last one is done. */
function useWhenReady(map: { readonly current: FleetMap | null }, state: MapState): (use: MapUse) => void {
  const waiting = useRef<MapUse | null>(null);
  useEffect(() => {
    if (map.current === null || waiting.current === null) return;
    waiting.current(map.current);
    waiting.current = null;
  }, [state]);
  return (use) => {
    if (map.current) use(map.current);
    else waiting.current = use;
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

function MapButtons({ onUse }: { onUse: (use: MapUse) => void }) {
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
