/** The packets of objects as they are read, by interval or one by one; and their removal. */
import { setTimeout as wait } from 'node:timers/promises';
import { type Document, type Filter, ObjectId } from 'mongodb';
import { badRequest, notFound } from '../errors.js';
import { isId } from '../model/entity.js';
import { LIMITS } from '../model/limits.js';
import { costOf, type Page, type Selection } from '../model/list.js';
import type { Database } from './connect.js';
import { type Layout, projectionOf, selectionFilter, translated } from './documents.js';
import { readInTurn } from './lists.js';
import { createMemory } from './memory.js';
import { packetKeysOf } from './packet-key.js';
import { EMPTY_PAGE, type JsonPage, readOne, readPage, summarize } from './pages.js';

export const PACKETS = 'packets';
/** What the border to the database has to know of packets. */
export const PACKET_LAYOUT: Layout = {
  references: ['_oid', '_gid'],
  texts: ['id'],
  hidden: [],
  derived: [],
  builtIn: false,
  followsObject: false,
};

/** What the index of an object's packets gives in order. */
const INDEXED = { sort: 'time', time: true };

/** Where pages of packets are written: each is one client's alone. */
const PAGES = createMemory();

/** A page of an object's packets as JSON, ascending by `time`, then `_ts`, unless the query says otherwise. */
export async function listPackets(database: Database, objectId: string, page: Page): Promise<JsonPage> {
  if (page.limit === 0) return EMPTY_PAGE;
  const conditions = packetConditions(objectId, page);
  if (page.after !== null) conditions.push(await afterPacket(database, objectId, page.after));
  const sort = page.sort;
  const direction = sort?.descending ? -1 : 1;
  const command = {
    find: PACKETS,
    filter: { $and: conditions },
    sort:
      sort === null || sort.path === 'time' ? { time: direction, _ts: direction } : { [sort.path]: direction, _id: 1 },
    skip: page.offset,
    limit: page.limit,
    batchSize: page.limit,
    allowDiskUse: true,
    ...projected(page.only),
  };
  return readInTurn([database], costOf(page, INDEXED), (reader) => readPage(reader, command, { memory: PAGES }));
}

/** How many packets of the object lie within the filters, and the first and last of them. */
export async function summarizePackets(database: Database, objectId: string, selection: Selection): Promise<Buffer> {
  const filter = { $and: packetConditions(objectId, selection) };
  const readEnd = (reader: Database, direction: 1 | -1) =>
    readOne(reader, {
      find: PACKETS,
      filter,
      sort: { time: direction, _ts: direction },
      ...projected(selection.only),
    });
  return readInTurn([database], 'scan', (reader) => summarize(reader, { collection: PACKETS, filter }, readEnd));
}

/** One packet of this object as JSON. Throws 404, also for a packet of another object. */
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

/** The packets of the object that have one of these `_id`s, whichever form their keys have. */
export function namedPacket(objectId: string, packetIds: readonly string[]): Filter<Document> {
  const _oid = new ObjectId(objectId);
  return { _id: { $in: packetIds.flatMap((id) => packetKeysOf(id, _oid)) as unknown[] as ObjectId[] }, _oid };
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

async function afterPacket(database: Database, objectId: string, packetId: string): Promise<Filter<Document>> {
  const last = await translated(() =>
    database.db.collection(PACKETS).findOne(namedPacket(objectId, [packetId]), { projection: { time: 1, _ts: 1 } }),
  );
  if (last === null) throw badRequest('after: the object has no such packet');
  return { time: { $gte: last.time }, $or: [{ time: { $gt: last.time } }, { _ts: { $gt: last._ts } }] };
}

function projected(only: readonly string[] | null): { projection?: Document } {
  const projection = projectionOf(PACKET_LAYOUT, only);
  return projection === undefined ? {} : { projection };
}

/** Removes all packets of an object that was removed. */
export async function removePackets(database: Database, objectId: string): Promise<void> {
  await removePacketsWhere(database, { _oid: new ObjectId(objectId) });
}

/**
 * Removes packets in steps that are each short enough for the database, with pauses as long as the steps, so that others
 * get their turn. Gives how many; ends early where the signal is aborted.
 */
export async function removePacketsWhere(
  database: Database,
  filter: Filter<Document>,
  signal?: AbortSignal,
): Promise<number> {
  const packets = database.db.collection(PACKETS);
  const options = { projection: { _id: 1 }, limit: LIMITS.packetsPerRemoval };
  for (let removed = 0; ; ) {
    const startMs = performance.now();
    const some = await translated(() => packets.find(filter, options).toArray());
    if (some.length === 0) return removed;
    const these = { _id: { $in: some.map(({ _id }) => _id) } };
    removed += (await translated(() => packets.deleteMany(these))).deletedCount;
    if (some.length < options.limit || signal?.aborted) return removed;
    await wait(performance.now() - startMs, undefined, { signal }).catch(() => undefined);
  }
}
