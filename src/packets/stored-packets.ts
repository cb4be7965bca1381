/** Converts messages to packets and to their stored form. */
import { ObjectId } from 'mongodb';
import { tooLarge } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { NewPacketKey } from '../platform/mongo/bson/packet-key.js';
import { toBson } from '../platform/mongo/bson/writer.js';
import type { ServiceClock } from '../platform/mongo/driver/client.js';
import type { Write } from '../platform/mongo/driver/retryable-write.js';
import { mapInSlices } from '../platform/slices.js';
import { type Message, type Packet, type PacketSource, type Refusal, toPacket, toServerMs } from './packet.js';

export interface PacketWrites {
  readonly packets: readonly Packet[];
  /** The packets in their stored form. */
  readonly writes: readonly Write[];
  /** Packets of an array that are too large. */
  readonly refused: readonly Refusal[];
}

interface Conversion {
  readonly source: PacketSource;
  readonly messages: readonly Message[];
  readonly stampUs: () => number;
  readonly clock: ServiceClock;
}

/** Converts messages in order; asynchronous for many of them. Throws 413 for a single packet. */
export function toPacketWrites(conversion: Conversion): PacketWrites | Promise<PacketWrites> {
  const { messages } = conversion;
  const converted = { packets: [], writes: [], refused: [] };
  const convert = converterOf(conversion, converted);
  if (messages.length > LIMITS.packetsPerWrite) return mapInSlices(messages, convert).then(() => converted);
  messages.forEach(convert);
  return converted;
}

function converterOf(
  { source, messages, stampUs, clock }: Conversion,
  converted: { readonly packets: Packet[]; readonly writes: Write[]; readonly refused: Refusal[] },
): (message: Message, nth: number) => void {
  // Stamps are taken at once, so that packets that arrive during the conversion get later ones.
  const stampsUs = messages.map(stampUs);
  const objectId = new ObjectId(source.objectId);
  const references = { _oid: objectId, _gid: new ObjectId(source.groupId) };
  return (message, nth) => {
    const id = message.id === null ? new ObjectId() : new ObjectId(message.id);
    const stamp = stampsUs[nth] as number;
    const packet = toPacket(message, id.toHexString(), source, stamp);
    if (message.timeMs === null) packet.time = toServerMs(stamp, clock);
    const document = { ...packet, _id: new NewPacketKey(id, objectId), ...references };
    const bson = toBson(document, LIMITS.packetStoredBytes);
    const jsonBytes = bson === null || bson.length > LIMITS.packetBytes ? jsonBytesOf(message) : 0;
    if (bson !== null && jsonBytes <= LIMITS.packetBytes) {
      converted.packets.push(packet);
      converted.writes.push({ bson });
      return;
    }
    const reason = `a packet has at most ${LIMITS.packetBytes} bytes of JSON; this one has ${jsonBytes}`;
    if (message.index === undefined) throw tooLarge(reason);
    converted.refused.push({ index: message.index, reason });
  };
}

const jsonBytesOf = ({ parameters }: Message): number => Buffer.byteLength(JSON.stringify(parameters));
