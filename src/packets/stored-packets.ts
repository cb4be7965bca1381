/** Converts messages to packets and to their stored form. */
import { ObjectId } from 'mongodb';
import { tooLarge } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { NewPacketKey } from '../platform/mongo/bson/packet-key.js';
import { toBson } from '../platform/mongo/bson/writer.js';
import type { ServiceClock } from '../platform/mongo/driver/client.js';
import type { Write } from '../platform/mongo/driver/retryable-write.js';
import { mapInSlices } from '../platform/slices.js';
import { mayBePacked } from './packed-repeats.js';
import { type Message, type Packet, type PacketSource, type Refusal, toPacket, toServerMs } from './packet.js';

export interface PacketWrites {
  readonly packets: readonly Packet[];
  /** The packets in their stored form. */
  readonly writes: readonly Write[];
  /** Those whose `_id`s may be those of packets that are packed. */
  readonly named: readonly Packet[];
  /** Packets of an array that are too large. */
  readonly refused: readonly Refusal[];
}

interface Conversion {
  readonly source: PacketSource;
  readonly messages: readonly Message[];
  readonly stampUs: () => number;
  readonly clock: ServiceClock;
  /** The least age of packets that may be packed. */
  readonly packedAgeMs: number;
}

/** Converts messages in order; asynchronous for many of them. Throws 413 for a single packet. */
export function toPacketWrites(conversion: Conversion): PacketWrites | Promise<PacketWrites> {
  const { messages } = conversion;
  const converted = { packets: [], writes: [], named: [], refused: [] };
  const convert = converterOf(conversion, converted);
  if (messages.length > LIMITS.packetsPerWrite) return mapInSlices(messages, convert).then(() => converted);
  messages.forEach(convert);
  return converted;
}

function converterOf(
  { source, messages, stampUs, clock, packedAgeMs }: Conversion,
  converted: {
    readonly packets: Packet[];
    readonly writes: Write[];
    readonly named: Packet[];
    readonly refused: Refusal[];
  },
): (message: Message, nth: number) => void {
  // Stamps are taken at once, so that packets that arrive during the conversion get later ones.
  const stampsUs = messages.map(stampUs);
  const nowMs = clock.now();
  const objectId = new ObjectId(source.objectId);
  const references = { _oid: objectId, _gid: new ObjectId(source.groupId) };
  /** Returns the bytes of one that is too large; null for one that is not. */
  const add = (message: Message, id: ObjectId, stamp: number): number | null => {
    const packet = toPacket(message, id.toHexString(), source, stamp);
    if (message.timeMs === null) packet.time = toServerMs(stamp, clock);
    const document = { ...packet, _id: new NewPacketKey(id, objectId), ...references };
    const bson = toBson(document, LIMITS.packetStoredBytes);
    const jsonBytes = bson === null || bson.length > LIMITS.packetBytes ? jsonBytesOf(message) : 0;
    if (bson === null || jsonBytes > LIMITS.packetBytes) return jsonBytes;
    converted.packets.push(packet);
    converted.writes.push({ bson });
    if (mayBePacked(message, nowMs, packedAgeMs)) converted.named.push(packet);
    return null;
  };
  return (message, nth) => {
    const id = message.id === null ? new ObjectId() : new ObjectId(message.id);
    const stamp = stampsUs[nth] as number;
    let jsonBytes = add(message, id, stamp);
    if (jsonBytes === null) return;
    for (const smaller of withoutResults(message)) {
      jsonBytes = add(smaller, id, stamp);
      if (jsonBytes === null) return message.calculated?.fail('the packet has no room for the results of its formulas');
    }
    const reason = `a packet has at most ${LIMITS.packetBytes} bytes of JSON; this one has ${jsonBytes}`;
    if (message.index === undefined) throw tooLarge(reason);
    converted.refused.push({ index: message.index, reason });
  };
}

/** A message that is too large for what formulas have added: with null for it, then without it. */
function withoutResults(message: Message): readonly Message[] {
  const { parameters, calculated } = message;
  if (calculated === undefined || calculated.parameters.length === 0) return [];
  const added = new Set(calculated.parameters);
  const others = Object.entries(parameters).filter(([name]) => !added.has(name));
  const nulls = calculated.parameters.map((name) => [name, null] as const);
  return [
    { ...message, parameters: Object.fromEntries([...others, ...nulls]) },
    { ...message, parameters: Object.fromEntries(others) },
  ];
}

const jsonBytesOf = ({ parameters }: Message): number => Buffer.byteLength(JSON.stringify(parameters));
