/** Finds the stored packets of messages that are sent again. */
import { BSON } from 'mongodb';
import type { Database } from '../platform/mongo/driver/client.js';
import { toEntity } from '../platform/mongo/schema/mapping.js';
import type { Packet } from './packet.js';
import { PACKET_LAYOUT } from './store/query.js';
import { findNamedPackets } from './store/reader.js';

/** Maps packets with a duplicate `_id` to the stored ones; null for a stored one that was removed meanwhile. */
export async function findStored(database: Database, refused: readonly Packet[]): Promise<Map<Packet, Packet | null>> {
  const names = refused.map(({ _id, _oid }) => ({ objectId: _oid, packetId: _id }));
  const documents = await findNamedPackets(database, names, { fields: null, isCommitted: true });
  const found = documents.map((bson) => toEntity(PACKET_LAYOUT, BSON.deserialize(bson)) as unknown as Packet);
  const stored = new Map(found.map((packet) => [pairOf(packet), packet]));
  return new Map(refused.map((packet) => [packet, stored.get(pairOf(packet)) ?? null]));
}

const pairOf = ({ _oid, _id }: Packet): string => `${_oid}/${_id}`;
