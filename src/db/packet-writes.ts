/** Messages as packets, and as they are stored. */
import { type Document, ObjectId } from 'mongodb';
import { tooLarge } from '../errors.js';
import { mapInSlices } from '../fairness/slices.js';
import { LIMITS } from '../model/limits.js';
import { type Message, type Packet, type PacketSource, toPacket } from '../model/packet.js';
import { toBson } from './bson-writer.js';
import { NewPacketKey } from './packet-key.js';
import { formerIdsOf } from './packet-repeats.js';
import type { Write } from './write-command.js';

export interface PacketWrites {
  readonly packets: readonly Packet[];
  /** The same as they are stored. */
  readonly writes: readonly Write[];
  /** The `_id`s that a former version may have stored them with; null where it has stored none of them. */
  readonly formerIds: readonly (string | null)[] | null;
}

interface Converter {
  readonly source: PacketSource;
  readonly messages: readonly Message[];
  readonly stampUs: () => number;
  readonly upgradedMs: number | null;
}

/** In the order of the messages; later, where there are many of them. Throws 413. */
export function toPacketWrites(asked: Converter): PacketWrites | Promise<PacketWrites> {
  const { messages, upgradedMs } = asked;
  const packets: Packet[] = [];
  const convert = converterOf(asked, packets);
  const formerIds = formerIdsOf(messages, upgradedMs);
  if (messages.length <= LIMITS.packetsPerWrite) return { packets, writes: messages.map(convert), formerIds };
  return mapInSlices(messages, convert).then((writes) => ({ packets, writes, formerIds }));
}

function converterOf(
  { source, messages, stampUs }: Converter,
  packets: Packet[],
): (message: Message, at: number) => Write {
  // All at once: what comes meanwhile is later.
  const stampsUs = messages.map(stampUs);
  const objectId = new ObjectId(source.objectId);
  const references = { _oid: objectId, _gid: new ObjectId(source.groupId) };
  return (message, at) => {
    const id = message.id === null ? new ObjectId() : new ObjectId(message.id);
    const packet = toPacket(message, id.toHexString(), source, stampsUs[at] as number);
    packets.push(packet);
    return toWrite({ ...packet, _id: new NewPacketKey(id, objectId), ...references }, at);
  };
}

function toWrite(document: Document, at: number): Write {
  const bson = toBson(document, LIMITS.packetBytes);
  if (bson === null) throw tooLarge(`[${at}]: a packet has at most ${LIMITS.packetBytes} bytes`);
  return { bson };
}
