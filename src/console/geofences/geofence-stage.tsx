/** The map of the geofences. */
import { useEffect, useRef } from 'preact/hooks';
import type { GeofenceMap } from '../map/geofence-map.js';
import { Icon } from '../parts/icon.js';
import { NoMap, useMap } from '../parts/map-view.js';
import { geofences } from '../state/geofences.js';
import { isDark } from '../state/theme.js';
import { t } from '../text/language.js';
import type { Drawing } from './drawing.js';

export function GeofenceStage({ drawing }: { drawing: Drawing }) {
  const { element, map, state } = useMap(async () => {
    const { createGeofenceMap } = await import('../map/geofence-map.js');
    return (container) =>
      createGeofenceMap(container, {
        label: t('data.geofences'),
        isDark: isDark.peek(),
        onSelect: (id) => selectOn(drawing, id),
        onShape: drawing.setShape,
      });
  });
  useShown(map, drawing, state === 'ready');
  return (
    <div class="stage framed">
      <div ref={element} class="map" />
      {state === 'impossible' ? <NoMap /> : <ZoomButtons map={map} />}
    </div>
  );
}

function ZoomButtons({ map }: { map: { readonly current: GeofenceMap | null } }) {
  return (
    <div class="map-buttons">
      <button type="button" aria-label={t('map.zoomIn')} onClick={() => map.current?.zoomBy(1)}>
        <Icon name="plus" />
      </button>
      <button type="button" aria-label={t('map.zoomOut')} onClick={() => map.current?.zoomBy(-1)}>
        <Icon name="minus" />
      </button>
    </div>
  );
}

function selectOn(drawing: Drawing, id: string): void {
  const found = geofences.peek()?.find(({ _id }) => _id === id);
  if (found !== undefined && drawing.edited.peek() === null) drawing.edit(found);
}

/** Keeps the map in step with the list and the form. */
function useShown(map: { readonly current: GeofenceMap | null }, drawing: Drawing, isReady: boolean): void {
  const { edited, shown, shape, mode } = drawing;
  const all = geofences.value;
  const isPlaced = useRef(false);
  const wasReady = useRef(false);
  useEffect(() => map.current?.setDark(isDark.value), [isDark.value, isReady]);
  useEffect(() => {
    const others = (all ?? []).filter((one) => one !== edited.value);
    map.current?.show(others);
    // Whoever draws by now has begun somewhere.
    const isDrawn = edited.value !== null && wasReady.current;
    wasReady.current = isReady;
    if (!isReady || all === null || isPlaced.current) return;
    isPlaced.current = true;
    if (!isDrawn) map.current?.goTo(all);
  }, [all, edited.value, isReady]);
  useEffect(() => {
    if (edited.value && edited.value !== 'new') map.current?.goTo([edited.value]);
  }, [edited.value, isReady]);
  useEffect(() => {
    if (shown.value) map.current?.goTo([shown.value]);
  }, [shown.value, isReady]);
  useEffect(() => {
    if (edited.value === null) map.current?.stop();
    else if (mode.value !== null) map.current?.begin(mode.value);
    else if (shape.value !== undefined) map.current?.edit(shape.value);
  }, [edited.value, mode.value, shape.value, isReady]);
}
