/** The route of an object in an interval: its replay, and the values at the moment that it shows. */
import { useComputed, useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { modelOf, toShown } from '../home/values.js';
import { Values } from '../parts/values.js';
import type { FleetObject, Packet } from '../state/fleet.js';
import { isPlaceField, placeIn } from '../state/places.js';
import { write } from '../state/write.js';
import { addPacket, type LastValues } from './last-values.js';
import { Replay } from './replay.js';

/** Before a moment of the replay: their values are shown beside it. */
const MOMENT_PACKETS = 100;

export function Moments({ object, packets }: { object: FleetObject; packets: readonly Packet[] }) {
  const momentMs = useSignal<number | null>(null);
  const model = modelOf(object._id, object.model);
  const names = useMemo(() => [...new Set(packets.flatMap(Object.keys))], [packets]);
  const shown = useComputed(() => {
    const ms = momentMs.value;
    const end = ms === null ? packets.length : 1 + packets.findLastIndex(({ time }) => time <= ms);
    const last: LastValues = new Map();
    for (const packet of packets.slice(Math.max(0, end - MOMENT_PACKETS), end)) addPacket(last, packet);
    const values = names.flatMap((name) => {
      const found = last.get(name);
      return found && !isPlaceField(name, found.value) ? [toShown(name, found.value, model)] : [];
    });
    return { values, position: placeIn(last) };
  });
  return (
    <>
      <Replay packets={packets} onMoment={write(momentMs)} />
      {momentMs.value !== null && <Values {...shown.value} isLarge />}
    </>
  );
}
