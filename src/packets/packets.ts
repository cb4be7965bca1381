/** Reads packets of objects, by interval or one by one, and removes them. */

import { type Document, type Filter, ObjectId } from 'mongodb';
import { isId } from '../core/entity.js';
import { notFound } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { costOf, type Page, type Selection } from '../core/list.js';
import { clock } from '../platform/clock.js';
import { createBufferPool } from '../platform/mongo/bson/buffer-pool.js';
import { toPacketKey } from '../platform/mongo/bson/packet-key.js';
import { EMPTY_PAGE, type JsonPage, readOne, readPage, summarize } from '../platform/mongo/bson/raw-cursor.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { runList } from '../platform/mongo/driver/list-queue.js';
import { type Layout, orderBy, projectionOf, selectionFilter } from '../platform/mongo/schema/mapping.js';
import { forgetRefused } from './refused-packets.js';
import { markRemoval } from './removal-marks.js';
import { findPlace, keepPlaces } from './removed-places.js';

export const PACKETS = 'packets';
export const PACKET_LAYOUT: Layout = {
  references: ['_oid', '_gid'],
  texts: ['id'],
  hidden: [],
  derived: [],
  builtIn: false,
  followsObject: false,
};

/** The orders that the index of an object's packets provides. */
const INDEXED = { sort: 'time', time: true };

/** Buffers of packet pages, each of which has a single reader. */
const PAGES = createBufferPool();

/** A page of an object's packets as JSON, by default ascending by `time`, then `_ts`. */
export async function listPackets(database: Database, objectId: string, page: Page): Promise<JsonPage> {
  if (page.limit === 0) return EMPTY_PAGE;
  const conditions = await findPageConditions(database, objectId, page);
  const command = {
    find: PACKETS,
    filter: { $and: conditions },
    sort: orderOf(page),
    skip: page.offset,
    limit: page.limit,
    batchSize: page.limit,
    allowDiskUse: true,
    ...projected(page.only),
  };
  return runList([database], costOf(page, INDEXED), (reader) => readPage(reader, command, { pool: PAGES }));
}

function orderOf({ sort }: Page): Document {
  if (sort !== null && sort.path !== 'time') return orderBy(PACKET_LAYOUT, sort);
  const direction = sort?.descending ? -1 : 1;
  return { time: direction, _ts: direction };
}

/** The number of matching packets of the object, with the first and the last of them. */
export async function summarizePackets(database: Database, objectId: string, selection: Selection): Promise<Buffer> {
  const filter = { $and: packetConditions(objectId, selection) };
  const readEnd = (reader: Database, direction: 1 | -1) =>
    readOne(reader, {
      find: PACKETS,
      filter,
      sort: { time: direction, _ts: direction },
      ...projected(selection.only),
    });
  return runList([database], 'scan', (reader) => summarize(reader, { collection: PACKETS, filter }, readEnd));
}

/** Throws 404, also for a packet of another object. */
export async function readPacket(
  database: Database,
  objectId: string,
  packetId: string,
  only: readonly string[] | null,
): Promise<Buffer> {
  if (!isId(packetId)) throw notFound();
  const filter = namedPacket(objectId, [packetId]);
  const found = await readOne(database, { find: PACKETS, filter, ...projected(only) });
  if (found === null) throw notFound();
  return found;
}

/** Matches the object's packets with one of these `_id`s. */
export function namedPacket(objectId: string, packetIds: readonly string[]): Filter<Document> {
  const _oid = new ObjectId(objectId);
  const keys: unknown[] = packetIds.map((id) => toPacketKey(id, _oid));
  return { _id: { $in: keys as ObjectId[] }, _oid };
}

/** The conditions of a page, including `after`, which may name a packet that was removed. */
export async function findPageConditions(
  database: Database,
  objectId: string,
  page: Pick<Page, 'after'> & Selection,
): Promise<Filter<Document>[]> {
  const conditions = packetConditions(objectId, page);
  if (page.after !== null) conditions.push(...(await afterPacket(database, objectId, page.after)));
  return conditions;
}

function packetConditions(objectId: string, selection: Selection): Filter<Document>[] {
  const conditions: Filter<Document>[] = [{ _oid: new ObjectId(objectId) }];
  const named = selection.filters.filter(({ path }) => path === '_id');
  for (const { values } of named) {
    const ids = values.map(({ text }) => text).filter(isId);
    conditions.push(namedPacket(objectId, ids));
  }
  const others = named.length === 0 ? selection : withoutFilters(selection, named);
  return conditions.concat(selectionFilter(PACKET_LAYOUT, others, ['id']));
}

const withoutFilters = (selection: Selection, left: Selection['filters']): Selection => ({
  ...selection,
  filters: selection.filters.filter((filter) => !left.includes(filter)),
});

/** A packet of an unknown place was removed with all packets before it: the oldest one follows. */
async function afterPacket(database: Database, objectId: string, packetId: string): Promise<Filter<Document>[]> {
  const named = namedPacket(objectId, [packetId]);
  const stored = await mapDriverErrors(() =>
    database.db.collection(PACKETS).findOne(named, { projection: { time: 1, _ts: 1 } }),
  );
  // The place of a packet is stored before the packet is removed.
  const last = stored ?? (await findPlace(database, { _id: named._id }));
  if (last === null) return [];
  return [{ time: { $gte: last.time }, $or: [{ time: { $gt: last.time } }, { _ts: { $gt: last._ts } }] }];
}

function projected(only: readonly string[] | null): { projection?: Document } {
  const projection = projectionOf(PACKET_LAYOUT, only);
  return projection === undefined ? {} : { projection };
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
