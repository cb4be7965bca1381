/** Finds the stored packets of messages that are sent again. */
import { type Document, ObjectId } from 'mongodb';
import { toPacketKey } from '../platform/mongo/bson/packet-key.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { toEntity } from '../platform/mongo/schema/mapping.js';
import type { Packet } from './packet.js';
import { PACKET_LAYOUT, PACKETS } from './packets.js';

/** Maps packets with a duplicate `_id` to the stored ones; null for a stored one that was removed meanwhile. */
export async function findStored(database: Database, refused: readonly Packet[]): Promise<Map<Packet, Packet | null>> {
  const keys: unknown[] = refused.map(({ _id, _oid }) => toPacketKey(_id, new ObjectId(_oid)));
  const documents = await database.db
    .collection<Document>(PACKETS)
    .find({ _id: { $in: keys as ObjectId[] } }, { readConcern: { level: 'majority' }, batchSize: keys.length })
    .toArray();
  const found = documents.map((document) => toEntity(PACKET_LAYOUT, document) as unknown as Packet);
  const stored = new Map(found.map((packet) => [pairOf(packet), packet]));
  return new Map(refused.map((packet) => [packet, stored.get(pairOf(packet)) ?? null]));
}

const pairOf = ({ _oid, _id }: Packet): string => `${_oid}/${_id}`;
