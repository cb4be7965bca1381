/** The fields that are no parameters of a packet. */

/** The fields of every packet. */
export const PACKET_FIELDS = ['_id', '_ts', 'time', 'online', '_oid', 'id', '_gid'] as const;

/** A packet of only these fields reports presence: whether the object is online. `deviceTime` is what a wrong clock said. */
export const PRESENCE_FIELDS = [...PACKET_FIELDS, 'deviceTime'] as const;
