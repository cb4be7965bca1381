/**
 * The stored key (`_id`) of a packet: the packet's own `_id`, which its device may choose, followed by the `_id` of its object.
 * A packet's `_id` is therefore unique only within its object: packets of other objects neither block nor reveal it. Clients
 * see the first twelve bytes, which also keep packets of one time together in the index.
 */
import { Binary, type ObjectId } from 'mongodb';
import { PACKET_KEY } from './reader.js';

const { BYTES, SUBTYPE, OWN_BYTES } = PACKET_KEY;

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

/** Extracts the packet's own `_id` from its key. */
export const packetIdIn = (key: Binary): string => Buffer.from(key.buffer).toString('hex', 0, OWN_BYTES);

export const isPacketKey = (value: unknown): value is Binary =>
  value instanceof Binary && value.sub_type === SUBTYPE && value.length() === BYTES;
