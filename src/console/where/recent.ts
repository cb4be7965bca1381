/** The last packets of the object that is looked at, asked for once: since when it stands, and where it was. */
import { type Signal, useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { activityOf } from '../state/activity.js';
import { requestWithoutLogin } from '../state/api.js';
import { nowMs } from '../state/clock.js';
import { type FleetObject, onPacket, type Packet, stateRevision, watchRemovals } from '../state/fleet.js';
import { keepStop, stopOf } from '../state/motion.js';
import { PLACE_NAMES, positionOf } from '../state/places.js';
import { may } from '../state/session.js';
import { addFix, type TimedFix } from './fixes.js';
import { findStop, MOTION_NAMES } from './stop.js';

const PACKETS = 600;
/** With those that arrive while it is looked at. */
const MOST_FIXES = 2_000;

export interface Recent {
  /** In the order of their times. */
  readonly fixes: readonly TimedFix[];
  /** Whether the object has never sent others. */
  readonly isWhole: boolean;
}

const toFixes = (packet: Packet): TimedFix[] => {
  const position = positionOf(packet);
  return position === null ? [] : [{ ...position, timeMs: packet.time }];
};

/** Null until they are there: they are asked for when the object stands since nobody knows when, or is in a geofence. */
export function useRecent(object: FleetObject, isInGeofence: boolean): Recent | null {
  const { _id: id, packetsRemoved } = object;
  const recent = useSignal<Recent | null>(null);
  const isStanding = activityOf(object, nowMs.value) === 'standing' && stopOf(id) === null;
  const isNeeded = isStanding || isInGeofence;
  useEffect(() => {
    recent.value = null;
  }, [id, packetsRemoved]);
  useEffect(() => {
    if (!isNeeded || recent.peek() !== null || !may('GET', `/objects/${id}/packets`)) return;
    void load(id, recent);
  }, [id, packetsRemoved, isNeeded]);
  useEffect(
    () =>
      onPacket((packet) => {
        const before = recent.peek();
        if (packet._oid !== id || before === null) return;
        const fixes = toFixes(packet).reduce((all, fix) => addFix(all, fix, MOST_FIXES), before.fixes);
        recent.value = { fixes, isWhole: before.isWhole && fixes.length < MOST_FIXES };
      }),
    [id],
  );
  return recent.value;
}

async function load(id: string, recent: Signal<Recent | null>): Promise<void> {
  const isCurrent = watchRemovals([id]);
  const query = { sortBy: '-time', limit: PACKETS, only: ['time', ...MOTION_NAMES, ...PLACE_NAMES] };
  const path = { id };
  // The sentence is said without them.
  const found = await requestWithoutLogin('GET /api/v1/objects/{id}/packets', { path, query }).catch(() => null);
  if (found === null || !isCurrent(id)) return;
  const packets = found as Packet[];
  const isWhole = packets.length < PACKETS;
  const stop = findStop(packets, isWhole);
  if (stop !== null && stopOf(id) === null) keepStop(id, stop);
  recent.value = { fixes: [...packets].reverse().flatMap(toFixes), isWhole };
  stateRevision.value++;
}
