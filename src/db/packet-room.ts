/** How many packets wait to be stored, and how large they are: of the objects of each group, and in all. */
import { unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';

interface Amount {
  packets: number;
  bytes: number;
}

/** What one request has in it. */
export interface RoomPlace {
  /** The request's packets have so many bytes. Throws 503. */
  grow(bytes: number): void;
  /** They are stored, or are not going to be. */
  leave(): void;
}

export interface PacketRoom {
  /** Makes place for a request's packets. Throws 503; never for the only ones of their group, unless others have all the room. */
  enter(groupId: string, packets: number): RoomPlace;
}

export function createPacketRoom(): PacketRoom {
  let groups = new Map<string, Amount>();
  const all: Amount = { packets: 0, bytes: 0 };
  let dropAt: number = LIMITS.idleCallers;
  const groupOf = (groupId: string): Amount => {
    const known = groups.get(groupId);
    if (known !== undefined) return known;
    if (groups.size >= dropAt) {
      // Together, when there are many: docs/development.md says why.
      groups = new Map([...groups].filter(([, { packets }]) => packets > 0));
      dropAt = Math.max(LIMITS.idleCallers, 2 * groups.size);
    }
    const group = { packets: 0, bytes: 0 };
    groups.set(groupId, group);
    return group;
  };
  return {
    enter(groupId, packets) {
      const group = groupOf(groupId);
      checkRoom(group.packets, packets, LIMITS.packetsWaitingPerGroup);
      checkRoom(all.packets, packets, LIMITS.packetsWaiting);
      return new Place(group, all, packets);
    },
  };
}

class Place implements RoomPlace {
  #bytes = 0;
  readonly #group: Amount;
  readonly #all: Amount;
  readonly #packets: number;

  constructor(group: Amount, all: Amount, packets: number) {
    this.#group = group;
    this.#all = all;
    this.#packets = packets;
    group.packets += packets;
    all.packets += packets;
  }

  grow(bytes: number): void {
    checkRoom(this.#group.bytes, bytes, LIMITS.packetsWaitingBytesPerGroup);
    checkRoom(this.#all.bytes, bytes, LIMITS.packetsWaitingBytes);
    this.#bytes = bytes;
    this.#group.bytes += bytes;
    this.#all.bytes += bytes;
  }

  leave(): void {
    this.#group.packets -= this.#packets;
    this.#all.packets -= this.#packets;
    this.#group.bytes -= this.#bytes;
    this.#all.bytes -= this.#bytes;
  }
}

function checkRoom(present: number, more: number, most: number): void {
  if (present === 0 || present + more <= most) return;
  throw unavailable('too many packets are waiting to be stored; none of these was');
}
