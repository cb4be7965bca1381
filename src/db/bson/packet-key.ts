/**
 * The stored key (`_id`) of a packet: the packet's own `_id`, which its device may choose, followed by the `_id` of its object.
 * A packet's `_id` is therefore unique only within its object: packets of other objects neither block nor reveal it. Clients
 * see the first twelve bytes, which also keep packets of one time together in the index.
 *
 * Before schema version 2 the key was only the packet's own `_id`, an ObjectId. Such packets stay unchanged.
 */
import { Binary, type Document, type Filter, ObjectId } from 'mongodb';
import { PACKET_KEY } from './reader.js';

const { BYTES, SUBTYPE, OWN_BYTES } = PACKET_KEY;
/** Matches packets with the key of former versions. */
export const FORMER_KEY = { _id: { $type: 'objectId' } } as const;

export type PacketKey = Binary | ObjectId;

/** The key of a packet that is not stored yet. */
export class NewPacketKey {
  readonly own: ObjectId;
  readonly object: ObjectId;

  constructor(own: ObjectId, object: ObjectId) {
    this.own = own;
    this.object = object;
  }
}

/** The key as a value of the driver, for queries. */
export function toPacketKey(packetId: string, objectId: ObjectId): Binary {
  const bytes = Buffer.allocUnsafe(BYTES);
  bytes.write(packetId, 0, 'hex');
  bytes.set(objectId.id, OWN_BYTES);
  return new Binary(bytes, SUBTYPE);
}

/** All keys that a packet of this `_id` and object may have. The key of former versions may belong to another object. */
export const packetKeysOf = (packetId: string, objectId: ObjectId): (Binary | ObjectId)[] => [
  toPacketKey(packetId, objectId),
  new ObjectId(packetId),
];

/** Extracts the packet's own `_id` from a key of either form. */
export const packetIdIn = (key: Binary | ObjectId): string =>
  key instanceof ObjectId ? key.toHexString() : Buffer.from(key.buffer).toString('hex', 0, OWN_BYTES);

/** Matches keys after `key` in the order of the index, where former keys come last. A comparison matches only one BSON type. */
export const keysAfter = (key: Binary | ObjectId): Filter<Document> =>
  (key instanceof ObjectId ? { _id: { $gt: key } } : { $or: [{ _id: { $gt: key } }, FORMER_KEY] }) as Filter<Document>;

export const isPacketKey = (value: unknown): value is Binary =>
  value instanceof Binary && value.sub_type === SUBTYPE && value.length() === BYTES;
