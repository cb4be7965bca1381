/** Bounds the number and the bytes of packets that wait to be stored: per group of objects, and in total. */
import { unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';

interface Amount {
  packets: number;
  bytes: number;
}

/** The share of one request. */
export interface PendingRequest {
  /** Adds the bytes of the request's packets. Throws 503. */
  grow(bytes: number): void;
  /** To be called when the packets are stored or refused. */
  remove(): void;
}

export interface PendingPackets {
  /** Adds a request's packets. Throws 503 at a limit, but not for the first request of a group unless the total is reached. */
  add(groupId: string, packets: number): PendingRequest;
}

export function createPendingPackets(): PendingPackets {
  let groups = new Map<string, Amount>();
  const all: Amount = { packets: 0, bytes: 0 };
  let dropAt: number = LIMITS.idleCallers;
  const groupOf = (groupId: string): Amount => {
    const known = groups.get(groupId);
    if (known !== undefined) return known;
    if (groups.size >= dropAt) {
      // Idle groups are dropped together, once there are many: docs/development.md says why.
      groups = new Map([...groups].filter(([, { packets }]) => packets > 0));
      dropAt = Math.max(LIMITS.idleCallers, 2 * groups.size);
    }
    const group = { packets: 0, bytes: 0 };
    groups.set(groupId, group);
    return group;
  };
  return {
    add(groupId, packets) {
      const group = groupOf(groupId);
      assertWithinLimits(group.packets, packets, LIMITS.packetsWaitingPerGroup);
      assertWithinLimits(all.packets, packets, LIMITS.packetsWaiting);
      return new Reservation(group, all, packets);
    },
  };
}

class Reservation implements PendingRequest {
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
    assertWithinLimits(this.#group.bytes, bytes, LIMITS.packetsWaitingBytesPerGroup);
    assertWithinLimits(this.#all.bytes, bytes, LIMITS.packetsWaitingBytes);
    this.#bytes = bytes;
    this.#group.bytes += bytes;
    this.#all.bytes += bytes;
  }

  remove(): void {
    this.#group.packets -= this.#packets;
    this.#all.packets -= this.#packets;
    this.#group.bytes -= this.#bytes;
    this.#all.bytes -= this.#bytes;
  }
}

function assertWithinLimits(present: number, more: number, max: number): void {
  if (present === 0 || present + more <= max) return;
  throw unavailable('too many packets are waiting to be stored; none of these was stored');
}
