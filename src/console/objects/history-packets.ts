/** The newest packets of an interval: of large packets fewer, since charts and routes come from the service. */
import { list } from '../state/api.js';
import type { Packet } from '../state/fleet.js';
import type { IntervalMs } from './days.js';

const MAX_PACKETS = 10_000;
/** That many tell how large the packets of the object are. */
const FIRST_PACKETS = 200;
const MAX_CHARACTERS = 8_000_000;

export interface NewestPackets {
  /** In the order of their times. */
  readonly packets: readonly Packet[];
  /** Whether the interval has more packets than these. */
  readonly isCut: boolean;
}

export async function fetchNewestPackets(objectId: string, { fromMs, toMs }: IntervalMs): Promise<NewestPackets> {
  // One more, to know whether there are more.
  const read = async (limit: number): Promise<NewestPackets> => {
    const query = { from: new Date(fromMs), to: new Date(toMs), sortBy: '-time', limit: limit + 1 };
    const found = await list<Packet>(`/objects/${objectId}/packets`, query);
    return { packets: found.slice(0, limit).reverse(), isCut: found.length > limit };
  };
  const first = await read(FIRST_PACKETS);
  const limit = toLimit(first.packets);
  return first.isCut && limit > FIRST_PACKETS ? read(limit) : first;
}

/** How many packets of this size are read. */
export function toLimit(packets: readonly Packet[]): number {
  const characters = JSON.stringify(packets).length;
  return Math.min(MAX_PACKETS, Math.floor((MAX_CHARACTERS * packets.length) / characters));
}
