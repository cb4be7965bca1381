/**
 * The places that removed packets had in the order of their object's packets, kept for a while: a client that read a packet
 * before its removal continues after it. Packets that retention removes leave none, because all packets before them went, too.
 */

import { Binary, type Document, type Filter } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import type { PlaceInOrder } from '../../core/packet-order.js';
import { PACKET_KEY } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import { keyOf, PACKETS, type PacketName } from './query.js';

const PLACES = 'removedPackets';

/** Stores the places of these packets, before they are removed. */
export async function keepPlaces({ db }: Database, these: Filter<Document>): Promise<void> {
  const pipeline = [
    { $match: these },
    { $project: { time: 1, _ts: 1, expires: { $add: ['$$NOW', LIMITS.removedPlaceMs] } } },
    { $merge: { into: PLACES, whenMatched: 'replace' } },
  ];
  await mapDriverErrors(() => db.collection(PACKETS).aggregate(pipeline).toArray());
}

/** The same for packets that are packed. */
export async function keepPlacesOf(
  { db }: Database,
  places: readonly (PlaceInOrder & { readonly key: Buffer })[],
): Promise<void> {
  const documents = places.map(({ key, timeMs, stampUs }) => ({
    _id: new Binary(key, PACKET_KEY.SUBTYPE),
    time: timeMs,
    _ts: stampUs,
  }));
  const pipeline = [
    { $documents: documents },
    { $set: { expires: { $add: ['$$NOW', LIMITS.removedPlaceMs] } } },
    { $merge: { into: PLACES, whenMatched: 'replace' } },
  ];
  await mapDriverErrors(() => db.aggregate(pipeline).toArray());
}

/** The place of a removed packet; null when it is unknown. */
export async function findRemovedPlace({ db }: Database, name: PacketName): Promise<PlaceInOrder | null> {
  const find = () => db.collection(PLACES).findOne({ _id: keyOf(name) }, { projection: { time: 1, _ts: 1 } });
  const found = await mapDriverErrors(find);
  return found && { timeMs: found.time, stampUs: found._ts };
}
