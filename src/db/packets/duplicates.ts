/** Finds the stored packets of messages that are sent again, whether this version or a former one stored them. */
import { type Binary, type Document, ObjectId } from 'mongodb';
import { type Message, mayBeFormer, type Packet } from '../../model/packet.js';
import { FORMER_KEY, toPacketKey } from '../bson/packet-key.js';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import { toEntity } from '../schema/mapping.js';
import { packetKeys } from '../schema/migrations/0002-packet-keys.js';
import { findApplied } from '../schema/migrations.js';
import { PACKET_LAYOUT, PACKETS } from './packets.js';

const NONE: ReadonlyMap<Packet, Packet> = new Map();

/** Maps packets with a duplicate `_id` to the stored ones; null for a stored one that was removed meanwhile. */
export async function findStored(database: Database, refused: readonly Packet[]): Promise<Map<Packet, Packet | null>> {
  const keys = refused.map(({ _id, _oid }) => toPacketKey(_id, new ObjectId(_oid)));
  const stored = new Map((await findByKeys(database, keys)).map((packet) => [pairOf(packet._oid, packet._id), packet]));
  return new Map(refused.map((packet) => [packet, stored.get(pairOf(packet._oid, packet._id)) ?? null]));
}

/** The packets of one request. */
interface DuplicateQuery {
  readonly packets: readonly Packet[];
  /** The results of `formerIdsOf`, by packet. */
  readonly formerIds: readonly (string | null)[] | null;
}

/** The `_id`s with which a former version may have stored the messages; null when it cannot have stored any. */
export function formerIdsOf(messages: readonly Message[], upgradedMs: number | null): (string | null)[] | null {
  if (upgradedMs === null) return null;
  const ids = messages.map((message) => (mayBeFormer(message, upgradedMs) ? message.formerId : null));
  return ids.some((id) => id !== null) ? ids : null;
}

/** Maps packets that a former version has already stored to the stored ones. */
export async function findFormer(
  database: Database,
  group: readonly DuplicateQuery[],
): Promise<ReadonlyMap<Packet, Packet>> {
  const wanted = new Map<Packet, string>();
  for (const { packets, formerIds } of group) {
    for (const [index, id] of (formerIds ?? []).entries()) if (id !== null) wanted.set(packets[index] as Packet, id);
  }
  if (wanted.size === 0) return NONE;
  const found = await findByKeys(
    database,
    [...wanted.values()].map((id) => new ObjectId(id)),
  );
  // In former versions an `_id` was unique across objects, so a found packet may belong to another object.
  const stored = new Map(found.map((packet) => [pairOf(packet._oid, packet._id), packet]));
  const former = new Map<Packet, Packet>();
  for (const [packet, id] of wanted) {
    const same = stored.get(pairOf(packet._oid, id));
    if (same !== undefined) former.set(packet, same);
  }
  return former;
}

const pairOf = (objectId: string, packetId: string): string => `${objectId}/${packetId}`;

async function findByKeys(database: Database, keys: readonly (Binary | ObjectId)[]): Promise<Packet[]> {
  const documents = await database.db
    .collection<Document>(PACKETS)
    .find({ _id: { $in: keys as ObjectId[] } }, { readConcern: { level: 'majority' }, batchSize: keys.length })
    .toArray();
  return documents.map((document) => toEntity(PACKET_LAYOUT, document) as unknown as Packet);
}

/** When keys of the current form were introduced here, in ms; null when no packet has a former key. */
export async function findPacketUpgrade(database: Database): Promise<number | null> {
  const upgradedMs = await findApplied(database, packetKeys);
  if (upgradedMs === null) return null;
  const former = await mapDriverErrors(() =>
    database.db.collection(PACKETS).findOne(FORMER_KEY, { hint: { _id: 1 }, projection: { _id: 1 } }),
  );
  return former === null ? null : upgradedMs;
}
