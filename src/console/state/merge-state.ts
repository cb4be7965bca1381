/** What a packet changes of the state of its object, as the server sees it. Pure. */
import { PRESENCE_FIELDS } from '../../core/packet-fields.js';

export interface Timed {
  readonly time: number;
  readonly online: boolean;
}

const OWN_FIELDS: ReadonlySet<string> = new Set(PRESENCE_FIELDS);

/** The time of the packet that says whether the object is online, where it is not that of the state itself. */
const onlineTimes = new WeakMap<Timed, number>();
const onlineTimeOf = (state: Timed): number => onlineTimes.get(state) ?? state.time;

/** The latest packet with data is the state, and the latest of all packets tells whether the object is online. */
export function mergeState<Packet extends Timed>(state: Packet | undefined, packet: Packet): Packet {
  if (state === undefined) return packet;
  const values = hasData(state) === hasData(packet) ? latest(state, packet, timeOf) : hasData(state) ? state : packet;
  const presence = latest(state, packet, onlineTimeOf);
  if (values === presence) return values;
  const merged = { ...values, online: presence.online };
  onlineTimes.set(merged, onlineTimeOf(presence));
  return merged;
}

/** For a state that was loaded: it is not older than the known one, so that nothing older than that changes it. */
export function keepOnlineTime(loaded: Timed, known: Timed): void {
  onlineTimes.set(loaded, Math.max(onlineTimeOf(loaded), onlineTimeOf(known)));
}

const timeOf = ({ time }: Timed): number => time;
const latest = <Packet extends Timed>(state: Packet, packet: Packet, time: (one: Timed) => number): Packet =>
  time(packet) >= time(state) ? packet : state;

const hasData = (packet: Timed): boolean => Object.keys(packet).some(isParameter);

/** Whether a field of a packet was sent by its device. */
export const isParameter = (name: string): boolean => !OWN_FIELDS.has(name);
