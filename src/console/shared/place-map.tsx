/** Where the shared object is, on a map that follows it. */
import { useEffect, useRef } from 'preact/hooks';
import type { WholeRoute } from '../objects/track.js';
import { NoMap, useMap } from '../parts/map-view.js';
import type { Place } from '../state/places.js';
import { isDark } from '../state/theme.js';
import { t } from '../text/language.js';

export function PlaceMap({ place, trail }: { place: Place; trail: WholeRoute | null }) {
  const isFitted = useRef(false);
  const { element, map, state } = useMap(async () => {
    const { createTrackMap } = await import('../map/track-map.js');
    const help = {
      wheel: t('replay.wheel', { key: t('replay.ctrl') }),
      wheelOnMac: t('replay.wheel', { key: '⌘' }),
      finger: t('replay.finger'),
    };
    return (container) => {
      const created = createTrackMap(container, { label: t('map.label'), isDark: isDark.peek(), help });
      created.begin(place);
      isFitted.current = false;
      return created;
    };
  });
  useEffect(() => map.current?.setPlace(place, true), [state, place.lat, place.lon]);
  useEffect(() => {
    if (trail === null || map.current === null) return;
    // Later it stays where the visitor has moved it.
    map.current.setTrack(isFitted.current ? [] : trail.points, trail.lines);
    isFitted.current = true;
  }, [state, trail]);
  useEffect(() => map.current?.setDark(isDark.value), [state, isDark.value]);
  return (
    <div class="track-map">
      <div ref={element} class="map" />
      {state === 'impossible' ? <NoMap /> : <p class="attribution">Natural Earth, GeoNames · MapLibre</p>}
    </div>
  );
}
