/** Packets that are sent again: found as they were stored the first time, by this version or by a former one. */
import { type Binary, type Document, ObjectId } from 'mongodb';
import { type Message, mayBeFormer, type Packet } from '../model/packet.js';
import type { Database } from './connect.js';
import { toEntity, translated } from './documents.js';
import { packetKeys } from './migrations/0002-packet-keys.js';
import { findApplied } from './migrations.js';
import { FORMER_KEY, toPacketKey } from './packet-key.js';
import { PACKET_LAYOUT, PACKETS } from './packets.js';

const NONE: ReadonlyMap<Packet, Packet> = new Map();

/** The packets that were refused for their `_id`, with those that have it; null where such a one is gone again. */
export async function findStored(database: Database, refused: readonly Packet[]): Promise<Map<Packet, Packet | null>> {
  const keys = refused.map(({ _id, _oid }) => toPacketKey(_id, new ObjectId(_oid)));
  const stored = new Map((await findByKeys(database, keys)).map((packet) => [nameOf(packet._oid, packet._id), packet]));
  return new Map(refused.map((packet) => [packet, stored.get(nameOf(packet._oid, packet._id)) ?? null]));
}

/** Packets that came together. */
interface Asked {
  readonly packets: readonly Packet[];
  /** What `formerIdsOf` gave for each of them. */
  readonly formerIds: readonly (string | null)[] | null;
}

/** The `_id`s with which a former version may have stored the messages; null where it cannot have stored any. */
export function formerIdsOf(messages: readonly Message[], upgradedMs: number | null): (string | null)[] | null {
  if (upgradedMs === null) return null;
  const ids = messages.map((message) => (mayBeFormer(message, upgradedMs) ? message.formerId : null));
  return ids.some((id) => id !== null) ? ids : null;
}

/** Those of the packets that a former version has stored already, with what it stored. */
export async function findFormer(database: Database, group: readonly Asked[]): Promise<ReadonlyMap<Packet, Packet>> {
  const wanted = new Map<Packet, string>();
  for (const { packets, formerIds } of group) {
    for (const [at, id] of (formerIds ?? []).entries()) if (id !== null) wanted.set(packets[at] as Packet, id);
  }
  if (wanted.size === 0) return NONE;
  const found = await findByKeys(
    database,
    [...wanted.values()].map((id) => new ObjectId(id)),
  );
  // It may be another object's: then it had its `_id` for all objects, and is nothing to this one.
  const stored = new Map(found.map((packet) => [nameOf(packet._oid, packet._id), packet]));
  const former = new Map<Packet, Packet>();
  for (const [packet, id] of wanted) {
    const same = stored.get(nameOf(packet._oid, id));
    if (same !== undefined) former.set(packet, same);
  }
  return former;
}

const nameOf = (objectId: string, packetId: string): string => `${objectId}/${packetId}`;

async function findByKeys(database: Database, keys: readonly (Binary | ObjectId)[]): Promise<Packet[]> {
  const documents = await database.db
    .collection<Document>(PACKETS)
    .find({ _id: { $in: keys as ObjectId[] } }, { readConcern: { level: 'majority' }, batchSize: keys.length })
    .toArray();
  return documents.map((document) => toEntity(PACKET_LAYOUT, document) as unknown as Packet);
}

/** When the packets here got keys of the present form, ms; null where none has a key of the former one (any more). */
export async function findPacketUpgrade(database: Database): Promise<number | null> {
  const upgradedMs = await findApplied(database, packetKeys);
  if (upgradedMs === null) return null;
  const one = await translated(() =>
    database.db.collection(PACKETS).findOne(FORMER_KEY, { hint: { _id: 1 }, projection: { _id: 1 } }),
  );
  return one === null ? null : upgradedMs;
}
