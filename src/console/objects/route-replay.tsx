/** The route of an object in an interval: its replay, and the values at the moment that it shows. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { modelOf, type Shown, toShown } from '../home/values.js';
import { Skeleton } from '../parts/notices.js';
import { Values } from '../parts/values.js';
import { list, request } from '../state/api.js';
import { useFetched } from '../state/fetched.js';
import type { FleetObject, Packet } from '../state/fleet.js';
import { isPlaceField, type Place, placeIn, positionOf } from '../state/places.js';
import { may } from '../state/session.js';
import { write } from '../state/write.js';
import { formatNumber, t } from '../text/language.js';
import type { IntervalMs } from './interval.js';
import { addPacket, type LastValues } from './last-values.js';
import { Replay } from './replay.js';
import { routeOf, routeOfFeature, type TrackFeature, type WholeRoute } from './track.js';

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

export function RouteReplay({ object, packets, interval, isCut }: MomentsProps) {
  const momentMs = useSignal<number | null>(null);
  const { route, isWhole } = useRoute({ object, packets, interval, isCut });
  const isBefore = momentMs.value !== null && isCut && momentMs.value < (packets[0]?.time ?? 0);
  const older = usePacketsUntil(object._id, isBefore ? momentMs.value : null, interval.fromMs);
  const shown = useValuesAt(object, isBefore ? older : packets, momentMs.value);
  if (route === null) return <Skeleton rows={5} />;
  return (
    <>
      {!isWhole && <p class="hint">{t('history.cutRoute', { count: formatNumber(packets.length) })}</p>}
      <Replay route={route} onMoment={write(momentMs)} />
      {momentMs.value !== null && <Values {...shown} isLarge />}
    </>
  );
}

/** The whole route: of many packets the service computes it. Null until it is known. */
function useRoute({ object: { _id }, packets, interval, isCut }: MomentsProps): {
  route: WholeRoute | null;
  isWhole: boolean;
} {
  const ofPackets = useMemo(() => routeOf(packets.flatMap(toPoint)), [packets]);
  const isAsked = isCut && may('GET', `/objects/${_id}/track`);
  const { fromMs, toMs } = interval;
  const { data, error } = useFetched(async () => {
    if (!isAsked) return null;
    const query = { from: new Date(fromMs), to: new Date(toMs), points: TRACK_POINTS };
    const track = await request('GET /api/v1/objects/{id}/track', { path: { id: _id }, query });
    return { fromMs, toMs, route: routeOfFeature(track as unknown as TrackFeature) };
  }, [_id, fromMs, toMs, isAsked]);
  if (!isAsked || error.value) return { route: ofPackets, isWhole: !isCut };
  const isOfInterval = data.value?.fromMs === fromMs && data.value.toMs === toMs;
  return { route: isOfInterval ? (data.value?.route ?? null) : null, isWhole: true };
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
