/** Reads packets of objects, by interval or one by one, and removes them. */

import { isId } from '../core/entity.js';
import { notFound } from '../core/errors.js';
import { costOf, type Page, type Selection } from '../core/list.js';
import type { PlaceInOrder } from '../core/packet-order.js';
import { createBufferPool } from '../platform/mongo/bson/buffer-pool.js';
import { toJson } from '../platform/mongo/bson/json-writer.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import { EMPTY_PAGE, type JsonPage, readPage, summarize } from '../platform/mongo/bson/raw-cursor.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { runList } from '../platform/mongo/driver/list-queue.js';
import { forgetRefused } from './refused-packets.js';
import { LATEST_FIRST, type PacketQuery } from './store/query.js';
import { countPackets, findFirstPacket, findNamedPacket, findNamedPackets, readPackets } from './store/reader.js';
import { removePacketsOf } from './store/removal.js';
import { findRemovedPlace } from './store/removed-places.js';

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
  await removePacketsOf(database, { objectId, which: 'all' });
}
