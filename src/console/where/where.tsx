/** `Standing for 23 min, 3 km NE of Dachau`, and the geofences that an object is in. */

import { computed } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { createFences, toFenceShapes } from '../../core/geofence.js';
import type { JsonObject } from '../../core/json.js';
import type { Position } from '../../core/position-fields.js';
import { hasSentence, Sentence } from '../home/sentence.js';
import { oldTimeOf } from '../home/values.js';
import { activityOf } from '../state/activity.js';
import { nowMs } from '../state/clock.js';
import { type FleetObject, stateRevision } from '../state/fleet.js';
import { geofences, loadGeofencesOnce } from '../state/geofences.js';
import { type Place, placeOf } from '../state/places.js';
import { presenceOf } from '../state/presence.js';
import { formatClock, formatDay, t, tn } from '../text/language.js';
import { formatWholeDistance } from '../text/measures.js';
import { Address } from './address.js';
import { findSince, type Since } from './fixes.js';
import { mayFind } from './may-find.js';
import { findNear, type Near } from './nearest.js';
import { type Recent, useRecent } from './recent.js';
import { GRID, hasFailed, loadCell, townsIn } from './town-cells.js';

/** A moving object is near a town, whatever the direction from it. */
const NEAR_M = 10_000;
/** More would hide what else there is. */
const MOST_GEOFENCES = 3;

export function Where({ object }: { object: FleetObject }) {
  stateRevision.value;
  const place = placeOf(object);
  const inside = useGeofences(place);
  const recent = useRecent(object, inside.length > 0);
  const isOnline = presenceOf(object) === 'online';
  const isNow = isOnline && oldTimeOf(place?.timeMs, object.state?.time ?? 0) === undefined;
  const words = useWords(place, isNow && activityOf(object, nowMs.value) === 'moving');
  const isMotion = hasSentence(object) && isOnline;
  return (
    <div class="where">
      {(isMotion || words !== null) && (
        <p class="card-sentence">
          {isMotion && <Sentence object={object} />}
          {isMotion && words !== null && (isNow ? ', ' : ' · ')}
          {words !== null && toText(words, isNow, !isMotion)}
        </p>
      )}
      {place !== null && mayFind('reverse') && <Address place={place} />}
      {isNow && inside.length > 0 && <InGeofences inside={inside} recent={recent} />}
    </div>
  );
}

/** `3 km NE of Dachau`; nothing where no town is near. */
export const NearestTown = ({ place }: { place: Position }) => useWords(place, false);

function useWords(place: Position | null, isMoving: boolean): string | null {
  const near = useNear(place);
  return near && toWords(near, isMoving);
}

function toText(words: string, isNow: boolean, isFirst: boolean): string {
  const text = isNow ? words : t('where.last', { place: words });
  return isFirst || !isNow ? text.charAt(0).toLocaleUpperCase() + text.slice(1) : text;
}

function toWords({ town, distanceM, direction, isIn }: Near, isMoving: boolean): string {
  if (isIn) return t('where.in', { town: town.name });
  if (isMoving && distanceM <= NEAR_M) return t('where.near', { town: town.name });
  return t('where.from', {
    distance: formatWholeDistance(distanceM),
    direction: t(`where.direction.${direction as 0}`),
    town: town.name,
  });
}

/** The nearest town. While the towns around a new place are loaded, it stays the one before: nothing flickers. */
function useNear(place: Position | null): Near | null {
  const shown = useRef<Near | null>(null);
  const { near, missing } = place === null ? { near: null, missing: [] } : findNear(place, GRID, townsIn);
  const isFailed = missing.some(hasFailed);
  useEffect(() => {
    for (const cell of missing) void loadCell(cell);
  }, [missing.join(), isFailed]);
  if (missing.length === 0) shown.current = near;
  else if (isFailed) shown.current = null;
  return shown.current;
}

/** Finds the geofences around a place, the smallest first. */
const fences = computed(() => {
  const all = geofences.value ?? [];
  const shapes = all.flatMap((one, index) => toFenceShapes(one as unknown as JsonObject, index));
  const find = createFences(shapes);
  const sizesM = all.map(() => 0);
  for (const { fence, sizeM } of shapes) sizesM[fence] = Math.max(sizeM, sizesM[fence] ?? 0);
  const bySize = (one: number, other: number): number => (sizesM[one] ?? 0) - (sizesM[other] ?? 0);
  return (place: Position): InGeofence[] =>
    [...find(place)].sort(bySize).map((index) => ({
      id: all[index]?._id ?? '',
      name: all[index]?.name ?? t('where.unnamed'),
      isInside: (at) => find(at).has(index),
    }));
});

interface InGeofence {
  readonly id: string;
  readonly name: string;
  readonly isInside: (place: Position) => boolean;
}

function useGeofences(place: Place | null): readonly InGeofence[] {
  useEffect(() => void loadGeofencesOnce(), []);
  const find = fences.value;
  return useMemo(() => (place === null ? [] : find(place)), [find, place?.lat, place?.lon]);
}

function InGeofences({ inside, recent }: { inside: readonly InGeofence[]; recent: Recent | null }) {
  const more = inside.length - MOST_GEOFENCES;
  return (
    <ul class="where-geofences">
      {inside.slice(0, MOST_GEOFENCES).map((one) => (
        <li key={one.id}>
          <InOne geofence={one} recent={recent} />
        </li>
      ))}
      {more > 0 && <li>{tn('where.more', more)}</li>}
    </ul>
  );
}

function InOne({ geofence: { name, isInside }, recent }: { geofence: InGeofence; recent: Recent | null }) {
  const since = useMemo(
    () => (recent === null ? null : findSince(recent.fixes, isInside, recent.isWhole)),
    [recent, isInside],
  );
  const [before, after] = geofenceText(since).split('{name}');
  return (
    <>
      {before}
      <b>{name}</b>
      {after}
    </>
  );
}

/** With `{name}` for the geofence. */
function geofenceText(since: Since | null): string {
  if (since === null) return t('where.geofence');
  const isToday = new Date(since.timeMs).toDateString() === new Date(nowMs.value).toDateString();
  const moment = isToday ? formatClock(since.timeMs, false) : formatDay(since.timeMs);
  return t(since.isAtLeast ? 'where.geofenceAtLeast' : 'where.geofenceSince', { moment });
}
