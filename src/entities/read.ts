/** Reads entities of any store: lists, summaries, single entities. Every read needs a scope. */
import { BSON, type Document, type Filter, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import type { Entity } from '../core/entity.js';
import { notFound } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { costOf, isSelective, type Page, type Selection } from '../core/list.js';
import type { Store } from '../core/stores.js';
import { findState, findWithState, type ObjectWithState } from '../packets/latest.js';
import { projected, stateOf, writeState } from '../packets/object-state.js';
import { writeJson } from '../platform/mongo/bson/json-writer.js';
import { rawBatches } from '../platform/mongo/bson/raw-batches.js';
import {
  EMPTY_PAGE,
  type JsonPage,
  readOne,
  readPage,
  sharePage,
  summarizeFound,
} from '../platform/mongo/bson/raw-cursor.js';
import { readObjectId } from '../platform/mongo/bson/reader.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { runList } from '../platform/mongo/driver/list-queue.js';
import { collectionName } from '../platform/mongo/schema/collections.js';
import {
  findByKey,
  findStored,
  isVisibleToOwner,
  type KeyField,
  type LookupOptions,
  resolveKey,
} from '../platform/mongo/schema/lookup.js';
import { selectionFilter, toEntity, toPageFind } from '../platform/mongo/schema/mapping.js';
import { isVisible, scopeFilter } from '../platform/mongo/schema/visibility.js';
import { type FirstEntities, isReadableThroughObjects, readableFilter, readableFirst } from './through-objects.js';

export const SEARCHED = ['name', 'id', 'login'];

/** The orders that an index of every store provides. */
const INDEXED = { sort: '_id', time: false };

/**
 * Conditions beside those of the query. `isShort`: an index makes the list short, whatever its `limit`. `isCommitted`: it has only what a
 * majority has stored, which no election undoes.
 */
export interface ListConditions {
  readonly conditions: readonly Filter<Document>[];
  readonly isShort: boolean;
  readonly isCommitted?: boolean;
}

/** A page of readable entities as JSON, by default ordered by `_id`. */
export async function listEntities(
  database: Database,
  store: Store,
  scope: Scope,
  page: Page,
  filter: ListConditions | null = null,
): Promise<JsonPage> {
  const maxCost = page.isOfEach ? 'scan' : costOf(page, INDEXED);
  const cost = maxCost === 'page' && filter?.isShort ? 'quick' : maxCost;
  if (page.limit === 0) return EMPTY_PAGE;
  // Equal requests of equal scopes in one iteration of the event loop share one read and its JSON.
  const name = `page ${JSON.stringify([store.name, store.throughObjects, scope, page, filter])}`;
  const read = (reader: Database) => readEntities(reader, store, scope, page, filter);
  return database.batch(name, [database], async (callers) =>
    sharePage(await runList(callers, cost, read), callers.length),
  );
}

async function readEntities(
  database: Database,
  store: Store,
  scope: Scope,
  page: Page,
  only: ListConditions | null,
): Promise<JsonPage> {
  const first = only === null ? firstOf(page) : null;
  if (first !== null) {
    const { filter, isWhole } = await readableFirst(database, store, scope, first);
    const found = await readWhere(database, store, page, [filter]);
    // Of the models that objects name, some may have been removed: then others take their places.
    if (isWhole || found.isCut || found.count === page.limit) return found;
    found.release?.();
  }
  const readable = [await readableFilter(database, store, scope), ...(only?.conditions ?? [])];
  return readWhere(database, store, page, readable, only?.isCommitted ? COMMITTED_READ : {});
}

function readWhere(
  database: Database,
  store: Store,
  page: Page,
  readable: readonly Filter<Document>[],
  concern: Document = {},
): Promise<JsonPage> {
  const command: Document = {
    find: collectionName(store.name),
    ...toPageFind(store, page, [...readable, ...selectionFilter(store, page, SEARCHED)]),
    ...projected(store, page.only),
    ...concern,
  };
  // The latest values of an object may be long.
  if (page.isOfEach) command.batchSize = LIMITS.latestBatchObjects;
  return readPage(database, rawBatches(database, command), { prepareExtra: stateOf(database, store, page) });
}

/** The entities that a page is made of, where nothing but its order selects them. */
function firstOf(page: Page): FirstEntities | null {
  if (isSelective(page) || (page.sort !== null && page.sort.path !== '_id')) return null;
  return { count: page.offset + page.limit, after: page.after, isDescending: page.sort?.descending ?? false };
}

/** The number of matching readable entities, with the first and the last of them. */
export async function summarizeEntities(
  database: Database,
  store: Store,
  scope: Scope,
  selection: Selection,
  also: readonly Filter<Document>[] = [],
): Promise<Buffer> {
  return runList([database], 'scan', async (reader) => {
    const readable = await readableFilter(reader, store, scope);
    const filter = { $and: [readable, ...selectionFilter(store, selection, SEARCHED), ...also] };
    const command = { find: collectionName(store.name), filter, ...projected(store, selection.only) };
    return summarizeFound(reader, command, stateOf(reader, store, selection));
  });
}

/** A readable entity as JSON, whole or with `only` some fields. Throws 404. */
export async function readEntity(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  only: readonly string[] | null = null,
): Promise<Buffer> {
  const found =
    only === null ? await readWhole(database, store, scope, key) : await readSome(database, store, scope, key, only);
  if (found === null) throw notFound();
  return found;
}

async function readWhole(database: Database, store: Store, scope: Scope, key: string): Promise<Buffer | null> {
  const named = await resolveKey(database, store, scope, key);
  const found = named === null ? null : await findWhole(database, store, ...named);
  if (found === null) return null;
  return (await isReadable(database, store, scope, found.stored)) ? toWhole(found) : null;
}

async function readSome(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  only: readonly string[],
): Promise<Buffer | null> {
  const named = await resolveKey(database, store, scope, key);
  if (named === null) return null;
  const filter = { $and: [filterOf(named), await readableFilter(database, store, scope)] };
  const command = { find: collectionName(store.name), filter, ...projected(store, only) };
  return readOne(database, command, stateOf(database, store, { only }));
}

/** Whether the scope sees a stored entity, or reads it because of objects. */
const isReadable = async (database: Database, store: Store, scope: Scope, stored: Uint8Array): Promise<boolean> =>
  isVisible(store, scope, stored) ||
  (await isVisibleToOwner(database, store, scope, stored)) ||
  (await isReadableThroughObjects(database, store, scope, readObjectId(stored) ?? ''));

/** An entity as JSON, without a permission check: for callers who have just changed it. Throws 404. */
export async function readChanged(database: Database, store: Store, id: string): Promise<Buffer> {
  const found = await findWhole(database, store, '_id', id);
  // Removed by another caller meanwhile.
  if (found === null) throw notFound();
  return toWhole(found);
}

async function findWhole(
  database: Database,
  store: Store,
  field: KeyField,
  value: string,
): Promise<ObjectWithState | null> {
  if (store.name === 'objects' && field === '_id') return findWithState(database, value);
  const stored = await findStored(database, store, field, value);
  if (stored === null) return null;
  const state = store.name === 'objects' ? await findState(database, readObjectId(stored) ?? '') : null;
  return { stored, state };
}

/** A visible entity. Throws 404. */
export async function getEntity(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  options: LookupOptions = {},
): Promise<Entity> {
  const document = await findByKey(database, store, scope, key, options);
  if (document === null) throw notFound();
  return toEntity(store, BSON.deserialize(document));
}

/** A readable entity: a visible one, or one that is read because of objects. Throws 404. */
export async function getReadable(database: Database, store: Store, scope: Scope, key: string): Promise<Entity> {
  const named = await resolveKey(database, store, scope, key);
  const document = named === null ? null : await findStored(database, store, ...named);
  if (document === null || !(await isReadable(database, store, scope, document))) throw notFound();
  return toEntity(store, BSON.deserialize(document));
}

/** An entity without a permission check, which is left to the caller. Throws 404. */
export async function getStored(database: Database, store: Store, id: string): Promise<Entity> {
  const document = await findStored(database, store, '_id', id);
  if (document === null) throw notFound();
  return toEntity(store, BSON.deserialize(document));
}

/** Calls `attempt` with a filter for the visible entity with this key; null for an invalid key. */
export async function withKey<T>(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  attempt: (filter: Filter<Document>) => Promise<T | null>,
): Promise<T | null> {
  const named = await resolveKey(database, store, scope, key);
  if (named === null) return null;
  return attempt({ $and: [filterOf(named), scopeFilter(store, scope)] });
}

const filterOf = ([field, value]: [KeyField, string]): Filter<Document> => ({
  [field]: field === '_id' ? new ObjectId(value) : value,
});

const toWhole = ({ stored, state }: ObjectWithState): Buffer =>
  writeJson((writer) => {
    writer.raw('{');
    writer.members(stored);
    writeState(writer, state);
    writer.raw('}');
  });
