/** The way of the selected object in the last ten minutes: a line beneath the objects, which is fainter the older it is. */
import { effect } from '@preact/signals';
import type { Feature, FeatureCollection } from 'geojson';
import type { ExpressionSpecification, GeoJSONSource, Map as GlMap } from 'maplibre-gl';
import { routeOfFeature, type TrackFeature, type TrackPoint, unwrapTrack } from '../objects/track.js';
import { requestWithoutLogin } from '../state/api.js';
import { nowMs } from '../state/clock.js';
import { objectRevision, objects, onPacket, stateRevision } from '../state/fleet.js';
import { positionOf } from '../state/places.js';
import { may } from '../state/session.js';
import type { Layer } from './lazy-layer.js';

const TRAIL_MS = 600_000;
/** Of the line as the service simplifies it. */
const POINTS = 500;
/** Of the places within this time, the last one is drawn. */
const STEP_MS = 1_000;
const SOURCE = 'trail';
const COLORS = { light: '36, 73, 196', dark: '143, 171, 255' };

const gradientOf = (isDark: boolean): ExpressionSpecification => {
  const color = COLORS[isDark ? 'dark' : 'light'];
  return ['interpolate', ['linear'], ['line-progress'], 0, `rgba(${color}, 0.1)`, 1, `rgba(${color}, 0.9)`];
};

/** Draws the trail of the object whose `_id` is shown, and goes on with it as packets come. */
export function createTrailLayer(map: GlMap, isDark: boolean): Layer<string | null> {
  // A gradient needs the length of the line.
  map.addSource(SOURCE, { type: 'geojson', lineMetrics: true, data: toLine([]) });
  map.addLayer({
    id: SOURCE,
    type: 'line',
    source: SOURCE,
    layout: { 'line-cap': 'round', 'line-join': 'round' },
    paint: { 'line-width': 3.5, 'line-gradient': gradientOf(isDark) },
  });
  let stop = (): void => undefined;
  map.on('remove', () => stop());
  return {
    show(id): void {
      stop();
      const draw = (places: readonly TrackPoint[]): void =>
        void map.getSource<GeoJSONSource>(SOURCE)?.setData(toLine(places));
      draw([]);
      stop = id === null ? () => undefined : follow(id, draw);
    },
    setDark: (wanted) => map.setPaintProperty(SOURCE, 'line-gradient', gradientOf(wanted)),
  };
}

const toLine = (places: readonly TrackPoint[]): FeatureCollection => {
  const coordinates = unwrapTrack(places).map(({ lon, lat }) => [lon, lat]);
  const line: Feature = { type: 'Feature', properties: {}, geometry: { type: 'LineString', coordinates } };
  return { type: 'FeatureCollection', features: coordinates.length > 1 ? [line] : [] };
};

/** Calls `draw` whenever the trail of the object changes: with its places, in the order of their times. Returns a function that ends it. */
function follow(id: string, draw: (places: readonly TrackPoint[]) => void): () => void {
  /** By the steps of their times. */
  let places = new Map<number, TrackPoint>();
  let isChanged = false;
  let isEnded = false;
  let removed: unknown = null;
  const add = (place: TrackPoint): void => {
    const step = Math.floor(place.timeMs / STEP_MS);
    if ((places.get(step)?.timeMs ?? 0) > place.timeMs) return;
    places.set(step, place);
    isChanged = true;
  };
  const drawChanged = (): void => {
    const beginMs = nowMs.peek() - TRAIL_MS;
    for (const [step, { timeMs }] of places) if (timeMs < beginMs) isChanged = places.delete(step);
    if (isChanged) draw([...places.values()].sort((one, other) => one.timeMs - other.timeMs));
    isChanged = false;
  };
  const read = async (): Promise<void> => {
    const own = new Map<number, TrackPoint>();
    places = own;
    isChanged = true;
    const track = await readTrack(id);
    if (isEnded || places !== own) return;
    for (const place of track) add(place);
    drawChanged();
  };
  const stopListening = onPacket((packet) => {
    const position = packet._oid === id ? positionOf(packet) : null;
    if (position !== null) add({ ...position, timeMs: packet.time });
  });
  const stopFollowing = effect(() => {
    objectRevision.value;
    stateRevision.value;
    nowMs.value;
    // At first, and when packets were removed.
    const removedNow = objects.get(id)?.packetsRemoved;
    if (removed !== removedNow) void read();
    removed = removedNow;
    drawChanged();
  });
  return () => {
    isEnded = true;
    stopListening();
    stopFollowing();
  };
}

/** Nothing when it cannot be had: the map shows where the object is without it. */
async function readTrack(id: string): Promise<readonly TrackPoint[]> {
  if (!may('GET', `/objects/${id}/track`)) return [];
  const query = { from: new Date(nowMs.peek() - TRAIL_MS), points: POINTS };
  const found = await requestWithoutLogin('GET /api/v1/objects/{id}/track', { path: { id }, query }).catch(() => null);
  return found === null ? [] : routeOfFeature(found as unknown as TrackFeature).points;
}
