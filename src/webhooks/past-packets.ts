/** Reads what is stored of the past, for messages that the change stream no longer gives: objects, and their packets. */

import { BSON, type Document, type Filter, ObjectId } from 'mongodb';
import { type AccessFields, audienceOf, type Scope } from '../core/access.js';
import type { JsonObject } from '../core/json.js';
import { LIMITS } from '../core/limits.js';
import type { PlaceInOrder } from '../core/packet-order.js';
import { builtInStore } from '../core/stores.js';
import { FIRST_STORED } from '../packets/store/query.js';
import { collectPackets, readPackets } from '../packets/store/reader.js';
import { toJson } from '../platform/mongo/bson/json-writer.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import { readObjectId, readShownId } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { toPlain } from '../platform/mongo/schema/mapping.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';
import { type ObjectFacts, toFacts } from './object-facts.js';

/** An object, with those who may see it and what selects it. */
export interface PastObject {
  readonly id: string;
  readonly audience: readonly string[];
  readonly facts: ObjectFacts;
}

/** A stored packet, as an event contains it. */
export interface PastPacket {
  readonly id: string;
  readonly objectId: string;
  readonly timeMs: number;
  readonly stampUs: number;
  readonly json: Buffer;
}

const OBJECTS = builtInStore('objects');
const PROJECTION = { owner: 1, branch: 1, access: 1, model: 1, labels: 1 };

/** The next objects after an `_id`, in order: those of the scope, and of these `_id`s; null for all. */
export async function listPastObjects(
  database: Database,
  { scope, ids, after }: { scope: Scope | null; ids: ReadonlySet<string> | null; after: string | null },
): Promise<PastObject[]> {
  const conditions: Filter<Document>[] = [{ _id: { $gt: new ObjectId(after ?? '0'.repeat(24)) } }];
  if (scope !== null) conditions.push(scopeFilter(OBJECTS, scope));
  if (ids !== null) conditions.push({ _id: { $in: [...ids].map((id) => new ObjectId(id)) } });
  const options = { projection: PROJECTION, sort: { _id: 1 }, limit: LIMITS.pastObjectsBatch } as const;
  const find = () => database.db.collection('objects').find({ $and: conditions }, options).toArray();
  const found = await mapDriverErrors(find, LIMITS.databaseOperationMs);
  return found.map((object) => ({
    id: String(object._id),
    audience: audienceOf(toPlain(object) as unknown as AccessFields),
    facts: toFacts(object),
  }));
}

/** When packets were stored, in ms since the epoch. */
export interface StoredInterval {
  readonly fromMs: number;
  readonly toMs: number;
  /** All changes up to it are there; null for those that are there now. */
  readonly position: string | null;
}

/**
 * The packets of these objects that were stored in the interval, in the order in which they came, batch by batch: those that a majority
 * has, since what is sent of them cannot be taken back. Throws 503.
 */
export async function* readStoredPackets(
  database: Database,
  objectIds: readonly string[],
  { fromMs, toMs, position }: StoredInterval,
): AsyncGenerator<PastPacket[]> {
  const reading = {
    objectIds,
    // No index has the stamp first: the time of the devices bounds how much of it is read.
    time: { from: fromMs - LIMITS.refillLateMs },
    stamps: [{ from: fromMs * 1_000, to: toMs * 1_000 }],
    sort: FIRST_STORED,
    batchPackets: LIMITS.historyPage,
    fields: null,
    committed: { since: position },
  };
  for await (const { documents } of readPackets(database, reading, { withinMs: null })) {
    if (documents.length > 0) yield documents.map(toPacket);
  }
}

/** The place of a packet among those of its object. */
export interface PacketPlace extends PlaceInOrder {
  readonly id: string;
}

/** The next packets of an object by their time, from a place on: the one at the place comes again. */
export async function listPastPackets(
  database: Database,
  objectId: string,
  { fromMs, toMs, place }: { fromMs: number; toMs: number; place: PacketPlace | null },
): Promise<PastPacket[]> {
  const interval = { objectIds: [objectId], time: { from: fromMs, to: toMs } };
  const start = place && { ...place, isIncluded: true };
  const limit = LIMITS.historyPage;
  const committed = { since: null };
  const reading = { ...interval, start, limit, batchPackets: limit, fields: null, committed };
  return (await collectPackets(database, reading)).map(toPacket);
}

function toPacket(bson: Buffer): PastPacket {
  try {
    return {
      id: readShownId(bson) ?? '',
      objectId: readObjectId(bson, '_oid') ?? '',
      timeMs: readNumber(bson, 0, 'time'),
      stampUs: readNumber(bson, 0, '_ts'),
      json: toJson(bson),
    };
  } catch {
    // A foreign writer stored a type without a JSON form: neither is it read past.
    const packet = toPlain(BSON.deserialize(bson)) as JsonObject;
    const id = String(packet._id);
    const objectId = String(packet._oid);
    const json = Buffer.from(JSON.stringify(packet));
    return { id, objectId, timeMs: Number(packet.time), stampUs: Number(packet._ts), json };
  }
}
