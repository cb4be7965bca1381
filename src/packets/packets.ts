/** Reads packets of objects, by interval or one by one, and removes them. */

import { type Document, type Filter, ObjectId } from 'mongodb';
import { isId } from '../core/entity.js';
import { notFound } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { costOf, type Page, type Selection } from '../core/list.js';
import { clock } from '../platform/clock.js';
import { createBufferPool } from '../platform/mongo/bson/buffer-pool.js';
import { toJson } from '../platform/mongo/bson/json-writer.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import { EMPTY_PAGE, type JsonPage, readPage, summarize } from '../platform/mongo/bson/raw-cursor.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { runList } from '../platform/mongo/driver/list-queue.js';
import { forgetRefused } from './refused-packets.js';
import { markRemoval } from './removal-marks.js';
import { findRemovedPlace, keepPlaces } from './removed-places.js';
import { LATEST_FIRST, PACKETS, type PacketQuery, type PlaceInOrder } from './store/query.js';
import { countPackets, findFirstPacket, findNamedPacket, findNamedPackets, readPackets } from './store/reader.js';

/** The orders that the index of an object's packets provides. */
const INDEXED = { sort: 'time', time: true };

/** Buffers of packet pages, each of which has a single reader. */
const PAGES = createBufferPool();

/** A page of an object's packets as JSON, by default ascending by `time`, then `_ts`. */
export async function listPackets(database: Database, objectId: string, page: Page): Promise<JsonPage> {
  if (page.limit === 0) return EMPTY_PAGE;
  const query = await toPacketQuery(database, objectId, page);
  const { sort, offset: skip, limit, only: fields } = page;
  const reading = { ...query, sort, skip, limit, batchPackets: limit, fields };
  const read = (reader: Database) => readPage(reader, readPackets(reader, reading), { pool: PAGES });
  return runList([database], costOf(page, INDEXED), read);
}

/** The number of matching packets of the object, with the first and the last of them. */
export async function summarizePackets(database: Database, objectId: string, selection: Selection): Promise<Buffer> {
  const query = { objectIds: [objectId], selection };
  return runList([database], 'scan', async (reader) => {
    const readEnd = async (direction: 1 | -1) => {
      const sort = direction === 1 ? null : LATEST_FIRST;
      const end = await findFirstPacket(reader, { ...query, sort, fields: selection.only });
      return end && toJson(end);
    };
    return summarize(await countPackets(reader, query), readEnd);
  });
}

/** Throws 404, also for a packet of another object. */
export async function readPacket(
  database: Database,
  objectId: string,
  packetId: string,
  only: readonly string[] | null,
): Promise<Buffer> {
  const found = isId(packetId) ? await findNamedPacket(database, { objectId, packetId }, only) : null;
  if (found === null) throw notFound();
  return toJson(found);
}

/** What a page asks for, including `after`, which may name a packet that was removed. */
export async function toPacketQuery(
  database: Database,
  objectId: string,
  page: Pick<Page, 'after'> & Selection,
): Promise<PacketQuery> {
  const place = page.after === null ? null : await findPlaceOf(database, objectId, page.after);
  const start = place && { ...place, isIncluded: false };
  return { objectIds: [objectId], selection: page, start };
}

/** Null for an unknown packet: it was removed with all packets before it, and the oldest one follows. */
async function findPlaceOf(database: Database, objectId: string, packetId: string): Promise<PlaceInOrder | null> {
  const name = { objectId, packetId };
  const [stored] = await findNamedPackets(database, [name], { fields: ['time', '_ts'] });
  // The place of a packet is stored before the packet is removed.
  if (stored === undefined) return findRemovedPlace(database, name);
  return { timeMs: readNumber(stored, 0, 'time'), stampUs: readNumber(stored, 0, '_ts') };
}

/** Removes all packets of an object that was removed, and why others were refused. */
export async function removePackets(database: Database, objectId: string): Promise<void> {
  await forgetRefused(database, objectId);
  await removePacketsWhere(database, { objectId });
}

export interface PacketRemoval {
  readonly objectId: string;
  /** Which of the object's packets are removed; all by default. */
  readonly filter?: Filter<Document>;
  /** Ends the removal early. */
  readonly signal?: AbortSignal;
  /** Whether clients can still continue after the removed packets. */
  readonly keepsPlaces?: boolean;
}

/**
 * Removes packets in short steps, with pauses as long as the steps, to keep the load on the database low. Returns their number.
 */
export async function removePacketsWhere(
  database: Database,
  { objectId, filter = {}, signal, keepsPlaces = false }: PacketRemoval,
): Promise<number> {
  const packets = database.db.collection(PACKETS);
  const options = { projection: { time: 1 }, limit: LIMITS.packetsPerRemoval };
  const found = { ...filter, _oid: new ObjectId(objectId) };
  for (let removed = 0; ; ) {
    const startMs = clock.steadyMs();
    const some = await mapDriverErrors(() => packets.find(found, options).toArray());
    if (some.length === 0) return removed;
    const these = { _id: { $in: some.map(({ _id }) => _id) } };
    await markRemoval(
      database,
      objectId,
      some.map(({ time }) => time),
    );
    if (keepsPlaces) await keepPlaces(database, PACKETS, these);
    removed += (await mapDriverErrors(() => packets.deleteMany(these))).deletedCount;
    if (some.length < options.limit || signal?.aborted) return removed;
    await clock.wait(clock.steadyMs() - startMs, { signal }).catch(() => undefined);
  }
}
