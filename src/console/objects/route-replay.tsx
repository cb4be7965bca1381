/** The route of an object in an interval: its replay, and the values at the moment that it shows. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { modelOf, type Shown, toShown } from '../home/values.js';
import { Problem } from '../parts/form.js';
import { Skeleton } from '../parts/notices.js';
import { Section } from '../parts/tabs.js';
import { Values } from '../parts/values.js';
import { list, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import type { FleetObject, Packet } from '../state/fleet.js';
import { isPlaceField, type Place, placeIn, positionOf } from '../state/places.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatNumber, language, t } from '../text/language.js';
import type { IntervalMs } from './days.js';
import { addPacket, type LastValues } from './last-values.js';
import { Replay } from './replay.js';
import { routeOf, routeOfFeature, type TrackFeature, type WholeRoute } from './track.js';
import { dayOf, sumOf, TripList, TripsCsv } from './trip-list.js';
import { type Leg, routeOfTrip, skipStops, type TrackProperties, toLegs } from './trips.js';

export { loadOwnTexts } from './history-texts.js';

/** Before a moment of the replay: their values are shown beside it. */
const MOMENT_PACKETS = 100;
/** Between two requests for them while the replay goes on. */
const MOMENT_REST_MS = 500;
/** Of a track: as many as the service gives. */
const TRACK_POINTS = 10_000;

interface MomentsProps {
  readonly object: FleetObject;
  /** The newest ones of the interval, in the order of their times. */
  readonly packets: readonly Packet[];
  readonly interval: IntervalMs;
  /** Whether the interval has more packets than these. */
  readonly isCut: boolean;
}

export function RouteReplay(props: MomentsProps) {
  const { object, packets, interval, isCut } = props;
  const momentMs = useSignal<number | null>(null);
  const isPlaying = useSignal(false);
  const trip = useSignal<Leg | null>(null);
  const { route, isWhole, properties, error } = useRoute(props);
  const legs = useMemo(() => (properties === null ? null : toLegs(properties, dayOf)), [properties]);
  const shownRoute = useMemo(
    () => (route === null || trip.value === null ? route : routeOfTrip(route, trip.value)),
    [route, trip.value],
  );
  // A route that grows while it is replayed goes on.
  useEffect(() => {
    const isIn = (ms: number): boolean => ms >= interval.fromMs && ms <= interval.toMs;
    if (trip.value !== null && !(isIn(trip.value.fromMs) && isIn(trip.value.toMs))) trip.value = null;
    if (momentMs.value !== null && !isIn(momentMs.value)) momentMs.value = null;
  }, [interval.fromMs, interval.toMs]);
  const isBefore = momentMs.value !== null && isCut && momentMs.value < (packets[0]?.time ?? 0);
  const older = usePacketsUntil(object._id, isBefore ? momentMs.value : null, interval.fromMs);
  const shown = useValuesAt(object, isBefore ? older : packets, momentMs.value);
  const current = currentOf(legs, momentMs.value);
  const list = useMemo(() => {
    const choose = (leg: Leg): void => {
      trip.value = leg.kind === 'trip' ? leg : null;
      momentMs.value = leg.fromMs;
      isPlaying.value = leg.kind === 'trip';
    };
    return legs === null ? <Skeleton rows={5} /> : <TripList legs={legs} current={current} onChoose={choose} />;
  }, [legs, current, language.value]);
  if (shownRoute === null) return <Skeleton rows={5} />;
  const isListed = may('GET', `/objects/${object._id}/track`);
  if (shownRoute.points.length < 2) return null;
  return (
    <>
      {!isWhole && <p class="hint">{t('history.cutRoute', { count: formatNumber(packets.length) })}</p>}
      <Section
        title={t('history.track')}
        about={properties && sumOf(properties)}
        action={legs && legs.length > 0 && <TripsCsv legs={legs} name={object.id} />}
      >
        <div class={isListed ? 'route' : ''}>
          <Replay
            route={shownRoute}
            momentMs={momentMs}
            isPlaying={isPlaying}
            skip={trip.value === null && legs?.some(({ kind }) => kind === 'trip') ? (ms) => skipStops(legs, ms) : null}
          >
            {trip.value !== null && (
              <button type="button" class="button small" onClick={() => write(trip)(null)}>
                {t('replay.whole')}
              </button>
            )}
          </Replay>
          {isListed && (error ? <Problem error={error} /> : list)}
        </div>
      </Section>
      {momentMs.value !== null && <Values {...shown} isLarge />}
    </>
  );
}

/** The trip or stop of a moment. */
function currentOf(legs: readonly Leg[] | null, momentMs: number | null): Leg | undefined {
  return momentMs === null ? undefined : legs?.findLast(({ fromMs, toMs }) => fromMs <= momentMs && momentMs <= toMs);
}

interface RouteData {
  /** Of many packets the service computes it. Null until it is known. */
  readonly route: WholeRoute | null;
  readonly isWhole: boolean;
  /** Its trips and stops. Null until they are known, or if the user may not read them. */
  readonly properties: TrackProperties | null;
  readonly error: unknown;
}

function useRoute({ object: { _id }, packets, interval, isCut }: MomentsProps): RouteData {
  const ofPackets = useMemo(() => routeOf(packets.flatMap(toPoint)), [packets]);
  const isAsked = may('GET', `/objects/${_id}/track`);
  const { fromMs, toMs } = interval;
  const { data, error } = useFetched(async () => {
    if (!isAsked) return null;
    // Without a line, as few points as the service gives.
    const query = {
      from: new Date(fromMs),
      to: new Date(toMs),
      points: isCut ? TRACK_POINTS : 2,
      stops: 'true' as const,
    };
    const found = await request('GET /api/v1/objects/{id}/track', { path: { id: _id }, query });
    const track = found as unknown as TrackFeature & { readonly properties: TrackProperties };
    return { fromMs, toMs, isCut, route: routeOfFeature(track), properties: track.properties };
  }, [_id, fromMs, toMs, isAsked, isCut]);
  const asked = data.value?.fromMs === fromMs && data.value.toMs === toMs ? data.value : null;
  const properties = asked?.properties ?? null;
  if (!isAsked || error.value || !isCut)
    return { route: ofPackets, isWhole: !isCut, properties: error.value ? null : properties, error: error.value };
  return { route: asked?.isCut ? asked.route : null, isWhole: true, properties, error: null };
}

function toPoint(packet: Packet) {
  const position = positionOf(packet);
  return position === null ? [] : [{ timeMs: packet.time, ...position }];
}

/** The last packets until a moment. One request at a time; of the moments that a replay passes meanwhile, the last one counts. */
function usePacketsUntil(objectId: string, momentMs: number | null, fromMs: number): readonly Packet[] {
  const found = useSignal<readonly Packet[]>([]);
  const wanted = useRef<number | null>(null);
  const isBusy = useRef(false);
  wanted.current = momentMs;
  useEffect(() => {
    if (momentMs === null || isBusy.current) return;
    isBusy.current = true;
    const follow = async (): Promise<void> => {
      for (let askedMs = Number.NaN; wanted.current !== null && wanted.current !== askedMs; ) {
        askedMs = wanted.current;
        const query = { from: new Date(fromMs), to: new Date(askedMs), sortBy: '-time', limit: MOMENT_PACKETS };
        found.value = (await list<Packet>(`/objects/${objectId}/packets`, query)).reverse();
        await new Promise<void>((resolve) => setTimeout(() => resolve(), MOMENT_REST_MS));
      }
    };
    void follow()
      // The values stay those of the moment before.
      .catch(() => undefined)
      .finally(() => {
        isBusy.current = false;
      });
  }, [momentMs, objectId, fromMs]);
  useEffect(
    () => () => {
      wanted.current = null;
    },
    [],
  );
  return found.value;
}

interface MomentValues {
  readonly values: readonly Shown[];
  readonly position: Pick<Place, 'lat' | 'lon'> | null;
}

/** What the last packets until a moment say. */
function useValuesAt(object: FleetObject, packets: readonly Packet[], momentMs: number | null): MomentValues {
  const model = modelOf(object._id, object.model);
  const names = useMemo(() => [...new Set(packets.flatMap(Object.keys))], [packets]);
  const end = momentMs === null ? packets.length : 1 + packets.findLastIndex(({ time }) => time <= momentMs);
  const last: LastValues = new Map();
  for (const packet of packets.slice(Math.max(0, end - MOMENT_PACKETS), end)) addPacket(last, packet);
  const values = names.flatMap((name) => {
    const found = last.get(name);
    return found && !isPlaceField(name, found.value) ? [toShown(name, found.value, model)] : [];
  });
  return { values, position: placeIn(last) };
}
