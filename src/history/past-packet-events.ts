/** Past packets as events: those with measurements, and those that only report presence. */
import { BSON } from 'mongodb';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import { PRESENCE_FIELDS } from '../core/packet-fields.js';
import { readPackets } from '../packets/store/reader.js';
import { hasOthers } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';
import type { PastEventName, PastPlace, PastQuery } from './past-event.js';
import { isNew, type PastEvent, type PastPart, readInParts, timesWithin, toPastEvent, wants } from './past-parts.js';

const NAMES: readonly PastEventName[] = ['object-packet', 'object-online', 'object-offline'];

/** Reads packets until there are enough events, or until `pastPackets` packets have been read for the page. */
export async function readPacketEvents(
  database: Database,
  objectIds: readonly string[],
  query: PastQuery,
): Promise<PastPart> {
  if (!wants(query, ...NAMES)) return { events: [], readTo: null };
  const parts = Math.ceil(objectIds.length / LIMITS.pastObjectsAtOnce);
  const isEach = NAMES.every((name) => query.names.has(name));
  // Two at least: the first may be the one at which the previous page ended.
  const limit = isEach ? query.limit + 1 : Math.max(Math.floor(LIMITS.pastPackets / parts), 2);
  return readInParts(objectIds, query, (part, left) => readPart(database, part, left, limit));
}

async function readPart(
  database: Database,
  objectIds: readonly string[],
  query: PastQuery,
  limit: number,
): Promise<PastPart> {
  const start = query.after && { ...query.after, isIncluded: true };
  // Others run between the batches.
  const batchPackets = Math.min(limit, query.limit + 1, LIMITS.pastBatch);
  const reading = { objectIds, time: timesWithin(query), start, limit, batchPackets, fields: null };
  const events: PastEvent[] = [];
  let read = 0;
  let last = null as PastPlace | null;
  for await (const { documents } of readPackets(database, reading)) {
    for (const document of documents) {
      const event = toEvent(document, query);
      if (event !== null) events.push(event);
    }
    if (events.length > query.limit) return { events: events.slice(0, query.limit + 1), readTo: null };
    const end = documents.at(-1);
    if (end !== undefined) last = placeOf(toPacket(end));
    read += documents.length;
  }
  return { events, readTo: read === limit ? last : null };
}

/** The event of a packet; null when it is not wanted. Few of many packets may be: only those are decoded. */
function toEvent(document: Uint8Array, query: PastQuery): PastEvent | null {
  const isMeasured = hasOthers(document, PRESENCE_FIELDS);
  if (isMeasured && !query.names.has('object-packet')) return null;
  const packet = toPacket(document);
  const presence = packet.online === false ? 'object-offline' : 'object-online';
  const [name, place] = [isMeasured ? 'object-packet' : presence, placeOf(packet)] as const;
  return query.names.has(name) && isNew(place, query) ? toPastEvent(name, packet, place) : null;
}

const toPacket = (document: Uint8Array): JsonObject => toPlain(BSON.deserialize(document)) as JsonObject;

const placeOf = ({ time, _ts, _id }: JsonObject): PastPlace => ({
  timeMs: Number(time),
  stampUs: Number(_ts),
  id: String(_id),
});
