/** Every store's entities: list, summarize, find, create, change, share, remove. Each asks for a scope. */
import { BSON, type Document, type Filter, ObjectId } from 'mongodb';
import { badRequest, forbidden, notFound, tooLarge, unavailable } from '../errors.js';
import type { Scope } from '../model/access.js';
import { type Entity, isId, merge, ownFields } from '../model/entity.js';
import type { JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import type { Page, Selection } from '../model/list.js';
import { builtInStore, type Store } from '../model/stores.js';
import { collectionName, collectionOf, type Database } from './connect.js';
import {
  checkReadable,
  projectionOf,
  scopeFilter,
  selectionFilter,
  toDocument,
  toEntity,
  toMergeUpdate,
  translated,
} from './documents.js';
import { latestPackets } from './packets.js';
import { type JsonPage, type PrepareExtra, readOne, readPage } from './pages.js';

const SEARCHED = ['name', 'id', 'login'];

/** A page of what the scope sees, as JSON; ordered by `_id` unless the query says otherwise. */
export async function listEntities(database: Database, store: Store, scope: Scope, page: Page): Promise<JsonPage> {
  if (page.limit === 0) return { body: Buffer.from('[]\n'), count: 0, lastId: null };
  const conditions = [scopeFilter(store, scope), ...selectionFilter(store, page, SEARCHED)];
  if (page.after !== null) conditions.push({ _id: { $gt: new ObjectId(page.after) } });
  if (page.sort !== null) checkReadable(store, page.sort.path);
  const direction = page.sort?.descending ? -1 : 1;
  return readPage(
    database,
    {
      find: collectionName(store.name),
      filter: { $and: conditions },
      sort:
        page.sort === null || page.sort.path === '_id' ? { _id: direction } : { [page.sort.path]: direction, _id: 1 },
      skip: page.offset,
      limit: page.limit,
      batchSize: page.limit,
      allowDiskUse: true,
      ...projected(store, page.only),
    },
    stateOf(database, store, page.only),
  );
}

/** contract, "meta": how many entities the scope sees within the filters, and the first and last of them. */
export async function summarizeEntities(
  database: Database,
  store: Store,
  scope: Scope,
  selection: Selection,
): Promise<Buffer> {
  const filter = { $and: [scopeFilter(store, scope), ...selectionFilter(store, selection, SEARCHED)] };
  const end = (direction: 1 | -1) =>
    readOne(
      database,
      { find: collectionName(store.name), filter, sort: { _id: direction }, ...projected(store, selection.only) },
      stateOf(database, store, selection.only),
    );
  const count = translated(() =>
    collectionOf(database, store).countDocuments(filter, { maxTimeMS: LIMITS.databaseOperationMs }),
  );
  const [total, first, last] = await Promise.all([count, end(1), end(-1)]);
  return Buffer.from(`{"count":${total},"first":${first ?? 'null'},"last":${last ?? 'null'}}\n`);
}

/** One entity as JSON, whole or `only` some of its fields. Throws 404. */
export async function readEntity(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  only: readonly string[] | null = null,
): Promise<Buffer> {
  const filter = entityFilter(store, scope, key);
  const found = await readOne(
    database,
    { find: collectionName(store.name), filter, ...projected(store, only) },
    stateOf(database, store, only),
  );
  if (found === null) throw notFound();
  return found;
}

/** One entity, for what the service decides by it. Throws 404. */
export async function getEntity(database: Database, store: Store, scope: Scope, key: string): Promise<Entity> {
  const document = await translated(() =>
    collectionOf(database, store).findOne(entityFilter(store, scope, key), { maxTimeMS: LIMITS.databaseOperationMs }),
  );
  if (document === null) throw notFound();
  return toEntity(store, document);
}

/** The `_id`s of those of these objects (named by `_id` or own id) that the scope sees. */
export async function findObjectIds(database: Database, scope: Scope, keys: readonly string[]): Promise<string[]> {
  const store = builtInStore('objects');
  const ids = keys.filter(isId).map((key) => new ObjectId(key));
  const filter = { $and: [{ $or: [{ _id: { $in: ids } }, { id: { $in: [...keys] } }] }, scopeFilter(store, scope)] };
  const found = await translated(() =>
    collectionOf(database, store)
      .find(filter, { projection: { _id: 1 } })
      .toArray(),
  );
  return found.map(({ _id }) => String(_id));
}

/** Stores a new entity with all its fields. Throws 409 where a unique field is taken. */
export async function createEntity(database: Database, store: Store, entity: Entity): Promise<Entity> {
  const document = toDocument(store, entity);
  // The database removes a token when it ends; its clock for that is a date.
  if (store.name === 'tokens') document._expires = new Date(entity.expiresAt as number);
  if (BSON.calculateObjectSize(document) > LIMITS.entityStoredBytes) {
    throw tooLarge(`the entity would be larger than ${LIMITS.entityStoredBytes} bytes`);
  }
  await translated(() => collectionOf(database, store).insertOne(document));
  return toEntity(store, document);
}

/** A new `_id`. */
export function newId(): string {
  return new ObjectId().toHexString();
}

export interface EntityChange {
  readonly patch: JsonObject;
  readonly nowMs: number;
}

/**
 * Merges a patch into an entity: one atomic operation, within the scope, never beyond the size an entity may have.
 * Throws 404, 403 (built in), 409 (unique field), 413.
 */
export async function changeEntity(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  change: EntityChange,
): Promise<Entity> {
  const patch = toDocument(store, { ...change.patch, _at: change.nowMs });
  const room = LIMITS.entityStoredBytes - BSON.calculateObjectSize(patch);
  for (let attempt = 0; attempt < CHECKED_ATTEMPTS; attempt++) {
    const filter: Filter<Document> = {
      ...changeable(store, scope, key),
      $expr: { $lte: [{ $bsonSize: '$$ROOT' }, room] },
    };
    if (store.checkWhole !== null) {
      const present = await getEntity(database, store, scope, key);
      store.checkWhole(ownFields(store, merge(present, change.patch)));
      // What was checked is what is changed: a change by another in between makes this attempt miss.
      filter._at = present._at ?? null;
    }
    const changed = await translated(() =>
      collectionOf(database, store).findOneAndUpdate(filter, [{ $set: toMergeUpdate(patch) }], {
        returnDocument: 'after',
      }),
    );
    if (changed !== null) return toEntity(store, changed);
    const present = await getChangeable(database, store, scope, key);
    if (BSON.calculateObjectSize(toDocument(store, present)) > room) {
      throw tooLarge(`the entity would become larger than ${LIMITS.entityStoredBytes} bytes`);
    }
  }
  throw unavailable('the entity is being changed by others too often; nothing was changed');
}

const CHECKED_ATTEMPTS = 8;

// Why nothing was changed or removed: 404 unless visible, 403 if built in.
async function getChangeable(database: Database, store: Store, scope: Scope, key: string): Promise<Entity> {
  const present = await getEntity(database, store, scope, key);
  if (present._builtin === true) throw forbidden('built in: it can be read, not changed');
  return present;
}

function changeable(store: Store, scope: Scope, key: string): Filter<Document> {
  return { ...entityFilter(store, scope, key), ...(store.builtIn && { _builtin: { $ne: true } }) };
}

/** Adds a user to those an entity is shared with, or takes one away. Throws 404, 403 (built in), 400 (too many). */
export async function shareEntity(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  share: { userId: string; shared: boolean; nowMs: number },
): Promise<Entity> {
  const room = share.shared ? { [`access.${LIMITS.sharedUsers - 1}`]: { $exists: false } } : {};
  const update: Document = {
    [share.shared ? '$addToSet' : '$pull']: { access: new ObjectId(share.userId) },
    $set: { _at: share.nowMs },
  };
  const changed = await translated(() =>
    collectionOf(database, store).findOneAndUpdate({ ...changeable(store, scope, key), ...room }, update, {
      returnDocument: 'after',
    }),
  );
  if (changed !== null) return toEntity(store, changed);
  await getChangeable(database, store, scope, key);
  throw badRequest(`user: the entity is shared with ${LIMITS.sharedUsers} users already`);
}

/** Removes an entity and gives what it was. Throws 404, 403 (built in). */
export async function removeEntity(database: Database, store: Store, scope: Scope, key: string): Promise<Entity> {
  const removed = await translated(() => collectionOf(database, store).findOneAndDelete(changeable(store, scope, key)));
  if (removed !== null) return toEntity(store, removed);
  await getChangeable(database, store, scope, key);
  throw notFound();
}

/** contract: an object's `:id` is its `_id` or its own `id`; every other entity's is its `_id`. */
function entityFilter(store: Store, scope: Scope, key: string): Filter<Document> {
  const keys: Filter<Document>[] = isId(key) ? [{ _id: new ObjectId(key) }] : [];
  if (store.name === 'objects') keys.push({ id: key });
  if (keys.length === 0) throw notFound();
  return { $and: [keys.length === 1 ? (keys[0] as Filter<Document>) : { $or: keys }, scopeFilter(store, scope)] };
}

function projected(store: Store, only: readonly string[] | null): { projection?: Document } {
  // `state` is not stored with the object; only its own fields are asked of the collection.
  const own = only !== null && store.name === 'objects' ? only.filter((path) => !isState(path)) : only;
  const projection = projectionOf(store, own);
  return projection === undefined ? {} : { projection };
}

const isState = (path: string): boolean => path === 'state' || path.startsWith('state.');

// An object's `state` is its latest packet: found when it is read, so that it is never older than what was acknowledged.
function stateOf(database: Database, store: Store, only: readonly string[] | null): PrepareExtra | undefined {
  if (store.name !== 'objects' || (only !== null && !only.some(isState))) return undefined;
  const paths = only === null || only.includes('state') ? null : only.filter(isState).map((path) => path.slice(6));
  return async (ids) => {
    const states = await latestPackets(database, ids, paths);
    return (writer, id) => {
      const state = states.get(id);
      if (state === undefined) return;
      writer.raw(',"state":');
      writer.document(state);
    };
  };
}
