/** Reads entities of any store: lists, summaries, single entities. Every read needs a scope. */
import { BSON, type Document, type Filter, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import type { Entity } from '../core/entity.js';
import { notFound } from '../core/errors.js';
import { costOf, type Page, type Selection } from '../core/list.js';
import { builtInStore, type Store } from '../core/stores.js';
import { findState, findWithState, type ObjectWithState } from '../packets/latest.js';
import { projected, stateOf, writeState } from '../packets/object-state.js';
import { writeJson } from '../platform/mongo/bson/json-writer.js';
import {
  EMPTY_PAGE,
  type JsonPage,
  readOne,
  readPage,
  sharePage,
  summarize,
} from '../platform/mongo/bson/raw-cursor.js';
import { readObjectId } from '../platform/mongo/bson/reader.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { runList } from '../platform/mongo/driver/list-queue.js';
import { collectionName, collectionOf } from '../platform/mongo/schema/collections.js';
import { findByKey, findStored, isVisibleToOwner, type KeyField, parseKey } from '../platform/mongo/schema/lookup.js';
import { orderBy, selectionFilter, toEntity } from '../platform/mongo/schema/mapping.js';
import { isVisible, scopeFilter } from '../platform/mongo/schema/visibility.js';

export const SEARCHED = ['name', 'id', 'login'];

/** The orders that an index of every store provides. */
const INDEXED = { sort: '_id', time: false };

/** Conditions beside those of the query. `isShort`: an index makes the list short, whatever its `limit`. */
export interface ListConditions {
  readonly conditions: readonly Filter<Document>[];
  readonly isShort: boolean;
}

/** A page of visible entities as JSON, by default ordered by `_id`. */
export async function listEntities(
  database: Database,
  store: Store,
  scope: Scope,
  page: Page,
  filter: ListConditions | null = null,
): Promise<JsonPage> {
  const also = filter?.conditions ?? [];
  const maxCost = page.isOfEach ? 'scan' : costOf(page, INDEXED);
  const cost = maxCost === 'page' && filter?.isShort ? 'quick' : maxCost;
  if (page.limit === 0) return EMPTY_PAGE;
  // Equal requests of equal scopes in one iteration of the event loop share one read and its JSON.
  const name = `page ${JSON.stringify([store.name, scope, page, also])}`;
  const read = (reader: Database) => readEntities(reader, store, scope, page, also);
  return database.batch(name, [database], async (callers) =>
    sharePage(await runList(callers, cost, read), callers.length),
  );
}

async function readEntities(
  database: Database,
  store: Store,
  scope: Scope,
  page: Page,
  also: readonly Filter<Document>[],
): Promise<JsonPage> {
  const conditions = [scopeFilter(store, scope), ...selectionFilter(store, page, SEARCHED), ...also];
  if (page.after !== null) conditions.push({ _id: { $gt: new ObjectId(page.after) } });
  return readPage(
    database,
    {
      find: collectionName(store.name),
      filter: { $and: conditions },
      sort: orderBy(store, page.sort),
      skip: page.offset,
      limit: page.limit,
      batchSize: page.limit,
      allowDiskUse: true,
      ...projected(store, page.only),
    },
    { prepareExtra: stateOf(database, store, page) },
  );
}

/** The number of matching visible entities, with the first and the last of them. */
export async function summarizeEntities(
  database: Database,
  store: Store,
  scope: Scope,
  selection: Selection,
  also: readonly Filter<Document>[] = [],
): Promise<Buffer> {
  const filter = { $and: [scopeFilter(store, scope), ...selectionFilter(store, selection, SEARCHED), ...also] };
  const collection = collectionName(store.name);
  const readEnd = (reader: Database, direction: 1 | -1) =>
    readOne(
      reader,
      { find: collection, filter, sort: { _id: direction }, ...projected(store, selection.only) },
      stateOf(reader, store, selection),
    );
  return runList([database], 'scan', (reader) => summarize(reader, { collection, filter }, readEnd));
}

/** A visible entity as JSON, whole or with `only` some fields. Throws 404. */
export async function readEntity(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  only: readonly string[] | null = null,
): Promise<Buffer> {
  const found =
    only === null
      ? await readWhole(database, store, scope, key)
      : await withKey(store, scope, key, (filter) =>
          readOne(
            database,
            { find: collectionName(store.name), filter, ...projected(store, only) },
            stateOf(database, store, { only }),
          ),
        );
  if (found === null) throw notFound();
  return found;
}

async function readWhole(database: Database, store: Store, scope: Scope, key: string): Promise<Buffer | null> {
  const named = parseKey(store, scope, key);
  const found = named === null ? null : await findWhole(database, store, ...named);
  if (found === null) return null;
  const isAllowed =
    isVisible(store, scope, found.stored) || (await isVisibleToOwner(database, store, scope, found.stored));
  return isAllowed ? toWhole(found) : null;
}

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
export async function getEntity(database: Database, store: Store, scope: Scope, key: string): Promise<Entity> {
  const document = await findByKey(database, store, scope, key);
  if (document === null) throw notFound();
  return toEntity(store, BSON.deserialize(document));
}

/** The `_id` of a visible entity. Throws 404. */
export async function getEntityId(database: Database, store: Store, scope: Scope, key: string): Promise<string> {
  const document = await findByKey(database, store, scope, key);
  if (document === null) throw notFound();
  return readObjectId(document) ?? '';
}

/** The `_id`s of the visible ones among these objects, which are named by `_id` or own id. */
export async function findObjectIds(database: Database, scope: Scope, keys: readonly string[]): Promise<string[]> {
  const store = builtInStore('objects');
  const ids: ObjectId[] = [];
  const ownIds: string[] = [];
  for (const key of keys) {
    const [field, value] = parseKey(store, scope, key) ?? [];
    if (field === '_id') ids.push(new ObjectId(value));
    else if (value !== undefined) ownIds.push(value);
  }
  const filter = { $and: [{ $or: [{ _id: { $in: ids } }, { id: { $in: ownIds } }] }, scopeFilter(store, scope)] };
  const found = await mapDriverErrors(() =>
    collectionOf(database, store)
      .find(filter, { projection: { _id: 1 } })
      .toArray(),
  );
  return found.map(({ _id }) => String(_id));
}

/** Calls `attempt` with a filter for the visible entity with this key; null for an invalid key. */
export async function withKey<T>(
  store: Store,
  scope: Scope,
  key: string,
  attempt: (filter: Filter<Document>) => Promise<T | null>,
): Promise<T | null> {
  const named = parseKey(store, scope, key);
  if (named === null) return null;
  const [field, value] = named;
  return attempt({ $and: [{ [field]: field === '_id' ? new ObjectId(value) : value }, scopeFilter(store, scope)] });
}

const toWhole = ({ stored, state }: ObjectWithState): Buffer =>
  writeJson((writer) => {
    writer.raw('{');
    writer.members(stored);
    writeState(writer, state);
    writer.raw('}');
  });
