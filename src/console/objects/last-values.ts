/** The last value of every parameter of an object: a device with a topic for each parameter sends packets of one value each. */
import { type Packet, parametersOf } from '../state/fleet.js';

/** For devices that invent names. */
const MOST_PARAMETERS = 200;

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
