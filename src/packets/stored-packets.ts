/** Converts messages to packets and to their stored form. */
import { type Document, ObjectId } from 'mongodb';
import { tooLarge } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { NewPacketKey } from '../platform/mongo/bson/packet-key.js';
import { toBson } from '../platform/mongo/bson/writer.js';
import type { Write } from '../platform/mongo/driver/retryable-write.js';
import { mapInSlices } from '../platform/slices.js';
import { type Message, type Packet, type PacketSource, toPacket } from './packet.js';

export interface PacketWrites {
  readonly packets: readonly Packet[];
  /** The packets in their stored form. */
  readonly writes: readonly Write[];
}

interface Conversion {
  readonly source: PacketSource;
  readonly messages: readonly Message[];
  readonly stampUs: () => number;
}

/** Converts messages in order; asynchronous for many of them. Throws 413. */
export function toPacketWrites(conversion: Conversion): PacketWrites | Promise<PacketWrites> {
  const { messages } = conversion;
  const packets: Packet[] = [];
  const convert = converterOf(conversion, packets);
  if (messages.length <= LIMITS.packetsPerWrite) return { packets, writes: messages.map(convert) };
  return mapInSlices(messages, convert).then((writes) => ({ packets, writes }));
}

function converterOf(
  { source, messages, stampUs }: Conversion,
  packets: Packet[],
): (message: Message, index: number) => Write {
  // Stamps are taken at once, so that packets that arrive during the conversion get later ones.
  const stampsUs = messages.map(stampUs);
  const objectId = new ObjectId(source.objectId);
  const references = { _oid: objectId, _gid: new ObjectId(source.groupId) };
  return (message, index) => {
    const id = message.id === null ? new ObjectId() : new ObjectId(message.id);
    const packet = toPacket(message, id.toHexString(), source, stampsUs[index] as number);
    packets.push(packet);
    return toWrite({ ...packet, _id: new NewPacketKey(id, objectId), ...references }, index);
  };
}

function toWrite(document: Document, index: number): Write {
  const bson = toBson(document, LIMITS.packetBytes);
  if (bson === null) throw tooLarge(`[${index}]: a packet has at most ${LIMITS.packetBytes} bytes`);
  return { bson };
}
