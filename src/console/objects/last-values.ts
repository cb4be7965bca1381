/** The last value of every parameter of an object: a device with a topic for each parameter sends packets of one value each. */
import { isPlace, type Model, type Shown, toShown } from '../home/values.js';
import { type Packet, parametersOf } from '../state/fleet.js';

/** For devices that invent names. */
const MOST_PARAMETERS = 200;
/** Values that come in turns are not old. */
const OLD_MS = 60_000;

/** By the name of the parameter, in the order of their first appearance, so that values stay where they are. */
export type LastValues = Map<string, { readonly value: unknown; readonly timeMs: number }>;

/** Adds the values of a packet that are not older than the known ones. */
export function addPacket(last: LastValues, packet: Packet): void {
  for (const [name, value] of parametersOf(packet)) {
    const known = last.get(name);
    const isNext = known === undefined ? last.size < MOST_PARAMETERS : packet.time >= known.timeMs;
    if (isNext) last.set(name, { value, timeMs: packet.time });
  }
}

/** The time of a value that is older than the newest packet, and not only by a turn. */
export const oldTimeOf = (last: LastValues, name: string, newestMs: number): number | undefined => {
  const timeMs = last.get(name)?.timeMs;
  return timeMs !== undefined && timeMs < newestMs - OLD_MS ? timeMs : undefined;
};

/** Every value but the place, with its time where it is older than the newest packet. */
export function toShownValues(last: LastValues, newestMs: number, model: Model | undefined): Shown[] {
  return [...last]
    .filter(([name]) => !isPlace(name))
    .map(([name, { value }]) => ({ ...toShown(name, value, model), timeMs: oldTimeOf(last, name, newestMs) }));
}
