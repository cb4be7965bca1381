/** Since when an object is online or offline, as far as its last packets tell. Pure. */

interface PresencePacket {
  readonly time: number;
  readonly online: boolean;
}

export interface Presence {
  readonly isOnline: boolean;
  readonly sinceMs: number;
  /** Whether it may have begun earlier, in packets that are not among these. */
  readonly isAtLeast: boolean;
}

/** `packets` in the order of their times; `isWhole`: they are all that the object ever sent. Null without packets. */
export function findPresence(packets: readonly PresencePacket[], isWhole: boolean): Presence | null {
  const last = packets.at(-1);
  if (last === undefined) return null;
  const change = packets.findLastIndex(({ online }) => online !== last.online);
  const first = packets[change + 1] ?? last;
  return { isOnline: last.online, sinceMs: first.time, isAtLeast: change === -1 && !isWhole };
}
