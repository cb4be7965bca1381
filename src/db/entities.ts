/** How entities of any store are read: listed, summarized, one by one. Each asks for a scope. */
import { BSON, BSONType, type Document, type Filter, ObjectId } from 'mongodb';
import { notFound } from '../errors.js';
import type { Scope } from '../model/access.js';
import type { Entity } from '../model/entity.js';
import { costOf, type Page, type Selection } from '../model/list.js';
import type { PacketSource } from '../model/packet.js';
import { builtInStore, type Store } from '../model/stores.js';
import { findField, readObjectId, readText } from './bson.js';
import { findByKey, findStored, isOwners, type KeyField, readKey } from './by-key.js';
import { collectionName, collectionOf, type Database } from './connect.js';
import {
  checkReadable,
  isVisible,
  projectionOf,
  scopeFilter,
  selectionFilter,
  toEntity,
  translated,
} from './documents.js';
import { type JsonWriter, writeJson } from './json.js';
import { readInTurn } from './lists.js';
import { EMPTY_PAGE, type JsonPage, type PrepareExtra, readOne, readPage, sharePage, summarize } from './pages.js';
import { findState, findStates, findWithState, type ObjectWithState } from './states.js';

const SEARCHED = ['name', 'id', 'login'];

/** An object as a source of packets, and its model. */
export type Source = PacketSource & { readonly modelId: string };

/** What an index of every store gives in order. */
const INDEXED = { sort: '_id', time: false };

/** Conditions beside those of the query, and whether an index makes the list short by them, whatever `limit` permits. */
export interface Narrowing {
  readonly conditions: readonly Filter<Document>[];
  readonly isShort: boolean;
}

/** A page of what the scope sees, as JSON; ordered by `_id` unless the query says otherwise. */
export async function listEntities(
  database: Database,
  store: Store,
  scope: Scope,
  page: Page,
  narrowing: Narrowing | null = null,
): Promise<JsonPage> {
  const also = narrowing?.conditions ?? [];
  const asked = costOf(page, INDEXED);
  const cost = asked === 'page' && narrowing?.isShort ? 'quick' : asked;
  if (page.limit === 0) return EMPTY_PAGE;
  // What callers who see the same ask for in the same turn is read, and turned into JSON, once.
  const what = `page ${JSON.stringify([store.name, scope, page, also])}`;
  const read = (reader: Database) => readEntities(reader, store, scope, page, also);
  return database.inTurn(what, [database], async (askers) =>
    sharePage(await readInTurn(askers, cost, read), askers.length),
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
    { prepareExtra: stateOf(database, store, page.only) },
  );
}

/** How many entities the scope sees within the filters, and the first and last of them. */
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
      stateOf(reader, store, selection.only),
    );
  return readInTurn([database], 'scan', (reader) => summarize(reader, { collection, filter }, readEnd));
}

/** One entity as JSON, whole or `only` some of its fields. Throws 404. */
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
      : await atKey(store, scope, key, (filter) =>
          readOne(
            database,
            { find: collectionName(store.name), filter, ...projected(store, only) },
            stateOf(database, store, only),
          ),
        );
  if (found === null) throw notFound();
  return found;
}

async function readWhole(database: Database, store: Store, scope: Scope, key: string): Promise<Buffer | null> {
  const named = readKey(store, scope, key);
  const found = named === null ? null : await findWhole(database, store, ...named);
  if (found === null) return null;
  const isSeen = isVisible(store, scope, found.stored) || (await isOwners(database, store, scope, found.stored));
  return isSeen ? toWhole(found) : null;
}

/** The entity of this `_id` as JSON, whoever may see it: for those who have just changed it. Throws 404. */
export async function readChanged(database: Database, store: Store, id: string): Promise<Buffer> {
  const found = await findWhole(database, store, '_id', id);
  // Removed by another since.
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

/** One entity, for what the service decides by it. Throws 404. */
export async function getEntity(database: Database, store: Store, scope: Scope, key: string): Promise<Entity> {
  const document = await findByKey(database, store, scope, key);
  if (document === null) throw notFound();
  return toEntity(store, BSON.deserialize(document));
}

/** The `_id` of what the scope sees under the key. Throws 404. */
export async function getEntityId(database: Database, store: Store, scope: Scope, key: string): Promise<string> {
  const document = await findByKey(database, store, scope, key);
  if (document === null) throw notFound();
  return readObjectId(document) ?? '';
}

/** What is asked of an object when packets are read or written: no more of it is decoded. Throws 404. */
export async function getSource(database: Database, scope: Scope, key: string): Promise<Source> {
  const document = await findByKey(database, builtInStore('objects'), scope, key);
  if (document === null) throw notFound();
  const reference = (name: string): string => findField(document, name, BSONType.objectId)?.toString('hex') ?? '';
  return {
    objectId: readObjectId(document) ?? '',
    ownId: readText(document, 'id'),
    groupId: reference('group'),
    modelId: reference('model'),
  };
}

/** The `_id`s of those of these objects (named by `_id` or own id) that the scope sees. */
export async function findObjectIds(database: Database, scope: Scope, keys: readonly string[]): Promise<string[]> {
  const store = builtInStore('objects');
  const ids: ObjectId[] = [];
  const ownIds: string[] = [];
  for (const key of keys) {
    const [field, value] = readKey(store, scope, key) ?? [];
    if (field === '_id') ids.push(new ObjectId(value));
    else if (value !== undefined) ownIds.push(value);
  }
  const filter = { $and: [{ $or: [{ _id: { $in: ids } }, { id: { $in: ownIds } }] }, scopeFilter(store, scope)] };
  const found = await translated(() =>
    collectionOf(database, store)
      .find(filter, { projection: { _id: 1 } })
      .toArray(),
  );
  return found.map(({ _id }) => String(_id));
}

/** The result of an attempt at what the key names, within the scope; null when there is none. */
export async function atKey<T>(
  store: Store,
  scope: Scope,
  key: string,
  attempt: (filter: Filter<Document>) => Promise<T | null>,
): Promise<T | null> {
  const named = readKey(store, scope, key);
  if (named === null) return null;
  const [field, value] = named;
  return attempt({ $and: [{ [field]: field === '_id' ? new ObjectId(value) : value }, scopeFilter(store, scope)] });
}

function projected(store: Store, only: readonly string[] | null): { projection?: Document } {
  // `state` is not stored with the object; only its own fields are asked of the collection.
  const own = only !== null && store.name === 'objects' ? only.filter((path) => !isState(path)) : only;
  const projection = projectionOf(store, own);
  return projection === undefined ? {} : { projection };
}

const isState = (path: string): boolean => path === 'state' || path.startsWith('state.');

function stateOf(database: Database, store: Store, only: readonly string[] | null): PrepareExtra | undefined {
  if (store.name !== 'objects' || (only !== null && !only.some(isState))) return undefined;
  const paths = only === null || only.includes('state') ? null : only.filter(isState).map((path) => path.slice(6));
  return async (ids) => {
    const states = await findStates(database, ids, paths);
    return (writer, id) => writeState(writer, states.get(id) ?? null);
  };
}

function writeState(writer: JsonWriter, state: Uint8Array | null): void {
  if (state === null) return;
  writer.raw(',"state":');
  writer.document(state);
}

const toWhole = ({ stored, state }: ObjectWithState): Buffer =>
  writeJson((writer) => {
    writer.raw('{');
    writer.members(stored);
    writeState(writer, state);
    writer.raw('}');
  });
