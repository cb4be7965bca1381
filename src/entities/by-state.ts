/**
 * Lists objects by the `online` and `time` of their state. The state is not stored with the object, so the latest packets of all
 * objects that match the other conditions are read in batches, and the page is selected from them.
 */

import { BSON, type Document, type Filter, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import { badRequest, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import type { Filter as FieldFilter, Page, Selection } from '../core/list.js';
import { builtInStore, type Store } from '../core/stores.js';
import { findLastPacketTimes } from '../packets/last-packet-times.js';
import { findStates } from '../packets/latest.js';
import { projected, stateOf } from '../packets/object-state.js';
import { clock } from '../platform/clock.js';
import { rawBatches } from '../platform/mongo/bson/raw-batches.js';
import { EMPTY_PAGE, type JsonPage, readPage, summarizeFound } from '../platform/mongo/bson/raw-cursor.js';
import { readObjectId } from '../platform/mongo/bson/reader.js';
import { inBatches } from '../platform/mongo/driver/bulk-queue.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { runList } from '../platform/mongo/driver/list-queue.js';
import { orderBy, selectionFilter } from '../platform/mongo/schema/mapping.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';
import { SEARCHED } from './read.js';

const OBJECTS = builtInStore('objects');
const COLLECTION = 'objects';
const PATHS: ReadonlySet<string> = new Set(['state.online', 'state.time']);

type Value = boolean | number | null;
interface Row {
  readonly id: string;
  /** By path; null when the object has no packets. */
  readonly values: Readonly<Record<string, Value>>;
}

/** Whether a list filters or sorts objects by their state. */
export function isByState(store: Store, query: Selection & Partial<Pick<Page, 'sort'>>): boolean {
  return store.name === 'objects' && pathsIn(query).length > 0;
}

function pathsIn({ filters, sort }: Selection & Partial<Pick<Page, 'sort'>>): string[] {
  return [...filters.map(({ path }) => path), ...(sort ? [sort.path] : [])].filter((path) => PATHS.has(path));
}

/** A page of visible objects. Throws a 400 when too many objects match the other conditions. */
export function listByState(database: Database, scope: Scope, page: Page): Promise<JsonPage> {
  return runList([database], 'scan', async (reader) => {
    const isSorted = page.sort !== null && PATHS.has(page.sort.path);
    // In a stored order, reading stops at the end of the page.
    const rows = await findRows(reader, scope, page, isSorted ? Number.POSITIVE_INFINITY : page.offset + page.limit);
    if (page.sort !== null && isSorted) sortRows(rows, page.sort);
    const ids = rows.slice(page.offset, page.offset + page.limit).map(({ id }) => id);
    if (ids.length === 0) return EMPTY_PAGE;
    const [projection] = Object.values(projected(OBJECTS, page.only));
    const batchSize = page.isOfEach ? LIMITS.latestBatchObjects : ids.length + 1;
    const batches = rawBatches(reader, inOrder(ids, projection, batchSize));
    return readPage(reader, batches, { prepareExtra: stateOf(reader, OBJECTS, page) });
  });
}

/** The number of matching objects, with the first and the last of them. */
export function summarizeByState(database: Database, scope: Scope, selection: Selection): Promise<Buffer> {
  return runList([database], 'scan', async (reader) => {
    const rows = await findRows(reader, scope, { ...selection, after: null, sort: null }, Number.POSITIVE_INFINITY);
    const filter = { _id: { $in: rows.map(({ id }) => new ObjectId(id)) } };
    const command = { find: COLLECTION, filter, ...projected(OBJECTS, selection.only) };
    return summarizeFound(reader, command, stateOf(reader, OBJECTS, selection));
  });
}

/** Documents in the order of their ids. */
function inOrder(ids: readonly string[], projection: Document | undefined, batchSize: number): Document {
  const pipeline: Document[] = [
    { $documents: ids.map((id) => ({ _id: new ObjectId(id) })) },
    { $lookup: { from: COLLECTION, localField: '_id', foreignField: '_id', as: 'object' } },
    { $unwind: '$object' },
    { $replaceWith: '$object' },
    ...(projection === undefined ? [] : [{ $project: projection }]),
  ];
  return { aggregate: 1, pipeline, cursor: { batchSize } };
}

type Rows = Selection & Pick<Page, 'after' | 'sort'>;

/** The objects that meet all conditions, in their stored order; reads batches until there are `enough` of them. */
async function findRows(database: Database, scope: Scope, query: Rows, enough: number): Promise<Row[]> {
  const paths = [...new Set(pathsIn(query))];
  const untilMs = clock.steadyMs() + LIMITS.stateListMs;
  const rows: Row[] = [];
  for (const batch of inBatches(await findIds(database, scope, query), LIMITS.stateListBatch)) {
    if (rows.length >= enough) break;
    if (clock.steadyMs() > untilMs) throw unavailable('the states of so many objects could not be read in time');
    const values = await findValues(database, batch, paths);
    for (const id of batch) {
      const row = { id, values: values.get(id) ?? {} };
      if (query.filters.every((filter) => !PATHS.has(filter.path) || isMet(filter, row))) rows.push(row);
    }
  }
  return rows;
}

const isMet = ({ path, values }: FieldFilter, row: Row): boolean =>
  values.some(({ value }) => value === (row.values[path] ?? null));

async function findIds(database: Database, scope: Scope, query: Rows): Promise<string[]> {
  const { after } = query;
  const others = { ...query, filters: query.filters.filter(({ path }) => !PATHS.has(path)) };
  const conditions: Filter<Document>[] = [
    scopeFilter(OBJECTS, scope),
    ...selectionFilter(OBJECTS, others, SEARCHED),
    ...(after === null ? [] : [{ _id: { $gt: new ObjectId(after) } }]),
  ];
  const limit = LIMITS.stateListObjects + 1;
  const command = {
    find: COLLECTION,
    filter: { $and: conditions },
    projection: { _id: 1 },
    sort: storedOrder(query),
    limit,
  };
  const ids: string[] = [];
  for await (const { documents } of rawBatches(database, { ...command, batchSize: limit, allowDiskUse: true })) {
    for (const document of documents) ids.push(readObjectId(document) ?? '');
  }
  if (ids.length < limit) return ids;
  throw badRequest(`state: these are more than ${LIMITS.stateListObjects} objects; restrict the list by other fields`);
}

const storedOrder = ({ sort }: Rows): Document => orderBy(OBJECTS, sort !== null && PATHS.has(sort.path) ? null : sort);

/** `online` comes from the latest packet, `time` from the latest one with data, which is the state. */
async function findValues(
  database: Database,
  ids: readonly string[],
  paths: readonly string[],
): Promise<Map<string, Row['values']>> {
  if (!paths.includes('state.time')) {
    const found = await findLastPacketTimes(database, ids);
    return new Map([...found].map(([id, { isOnline }]) => [id, { 'state.online': isOnline }]));
  }
  const states = await findStates(database, ids, ['time', 'online']);
  return new Map(
    [...states].map(([id, state]) => {
      const { time, online } = BSON.deserialize(state);
      return [id, { 'state.time': Number(time), 'state.online': online !== false }];
    }),
  );
}

/** The order of MongoDB: missing values first, equal ones by `_id`. */
function sortRows(rows: Row[], { path, descending }: NonNullable<Page['sort']>): void {
  const direction = descending ? -1 : 1;
  const rank = ({ values }: Row): number => Number(values[path] ?? Number.NEGATIVE_INFINITY);
  // Sorting is stable.
  rows.sort((a, b) => (rank(a) === rank(b) ? 0 : (rank(a) < rank(b) ? -1 : 1) * direction));
}
