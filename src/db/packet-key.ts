/**
 * The key (`_id`) under which a packet is stored: its own `_id`, which its device may choose, followed by that of its
 * object. So an `_id` is unique within its object: what other objects have neither takes its place nor shows. The first
 * twelve bytes are what everybody sees; they keep packets of one time together in the index.
 *
 * Before schema version 2 the key was the packet's own `_id` alone, an ObjectId. Such packets stay as they are.
 */
import { Binary, type Document, type Filter, ObjectId } from 'mongodb';
import { PACKET_KEY } from './bson.js';

const { BYTES, SUBTYPE, OWN_BYTES } = PACKET_KEY;
/** Packets whose key is one of former versions. */
export const FORMER_KEY = { _id: { $type: 'objectId' } } as const;

/** As it is stored. */
export type PacketKey = Binary | ObjectId;

/** The key of a packet that is about to be stored. */
export class NewPacketKey {
  readonly own: ObjectId;
  readonly object: ObjectId;

  constructor(own: ObjectId, object: ObjectId) {
    this.own = own;
    this.object = object;
  }
}

/** The same as a value of the driver's, to look for it. */
export function toPacketKey(packetId: string, objectId: ObjectId): Binary {
  const bytes = Buffer.allocUnsafe(BYTES);
  bytes.write(packetId, 0, 'hex');
  bytes.set(objectId.id, OWN_BYTES);
  return new Binary(bytes, SUBTYPE);
}

/** Every key that a packet of this `_id` and object may have; the one of former versions may be another object's. */
export const packetKeysOf = (packetId: string, objectId: ObjectId): (Binary | ObjectId)[] => [
  toPacketKey(packetId, objectId),
  new ObjectId(packetId),
];

/** The packet's own `_id`, of a key of either form. */
export const packetIdIn = (key: Binary | ObjectId): string =>
  key instanceof ObjectId ? key.toHexString() : Buffer.from(key.buffer).toString('hex', 0, OWN_BYTES);

/** In the order of the index, in which those of former versions come last; a comparison finds one kind of values only. */
export const keysAfter = (key: Binary | ObjectId): Filter<Document> =>
  (key instanceof ObjectId ? { _id: { $gt: key } } : { $or: [{ _id: { $gt: key } }, FORMER_KEY] }) as Filter<Document>;

export const isPacketKey = (value: unknown): value is Binary =>
  value instanceof Binary && value.sub_type === SUBTYPE && value.length() === BYTES;
