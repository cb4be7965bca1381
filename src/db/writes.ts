/** How entities of any store are written: created, changed, shared, removed. Each but creation asks for a scope. */
import { type Document, ObjectId } from 'mongodb';
import { badRequest, forbidden, notFound, tooLarge, unavailable } from '../errors.js';
import type { Scope } from '../model/access.js';
import { type Entity, merge, ownFields } from '../model/entity.js';
import type { JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import type { Store } from '../model/stores.js';
import { readObjectId } from './bson.js';
import { DOCUMENT_BYTES, toBson } from './bson-writer.js';
import { findStored, readKey } from './by-key.js';
import { collectionName, collectionOf, type Database } from './connect.js';
import { toDocument, toEntity, translated, visibleExpression } from './documents.js';
import { atKey, getEntity } from './entities.js';
import { insertDocument } from './inserts.js';
import { toMergeFields } from './merging.js';
import { updateDocument } from './updates.js';

const CHECKED_ATTEMPTS = 8;

/** Stores a new entity with all its fields. Throws 409 where a unique field is taken. */
export async function createEntity(database: Database, store: Store, entity: Entity): Promise<Entity> {
  const document = toDocument(store, entity);
  // The database removes a token when it ends; its clock for that is a date.
  if (store.name === 'tokens') document._expires = new Date(entity.expiresAt as number);
  const bson = toBson(document, LIMITS.entityStoredBytes);
  if (bson === null) throw tooLarge(`the entity would be larger than ${LIMITS.entityStoredBytes} bytes`);
  await insertDocument(database, collectionOf(database, store), { bson });
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
 * Gives its `_id`. Throws 404, 403 (built in), 409 (unique field), 413.
 */
export async function changeEntity(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  { patch, nowMs }: EntityChange,
): Promise<string> {
  const change = () => changeNow(database, store, scope, key, { patch, nowMs });
  // Checked as a whole, changes of one entity at once would each make the others begin anew.
  return store.checkWhole === null ? change() : inSequence(`${store.name}/${key}`, change);
}

const sequences = new Map<string, Promise<unknown>>();

/** One after the other. */
async function inSequence<T>(name: string, work: () => Promise<T>): Promise<T> {
  const result = (sequences.get(name) ?? Promise.resolve()).then(work);
  const ended = result.catch(() => undefined);
  sequences.set(name, ended);
  await ended;
  if (sequences.get(name) === ended) sequences.delete(name);
  return result;
}

async function changeNow(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  { patch, nowMs }: EntityChange,
): Promise<string> {
  const fields = toDocument(store, patch);
  const room = LIMITS.entityStoredBytes - bytesOf(Object.assign({}, fields, { _at: nowMs }));
  const merged = toMergeFields(fields);
  for (let attempt = 0; attempt < CHECKED_ATTEMPTS; attempt++) {
    const conditions: Document[] = [...notBuiltIn(store), { $lte: [{ $bsonSize: '$$ROOT' }, room] }];
    if (store.checkWhole !== null) {
      const present = await getEntity(database, store, scope, key);
      store.checkWhole(ownFields(store, merge(present, patch)));
      // What was checked is what is changed: a change by another in between makes this attempt miss.
      conditions.push({ $eq: [{ $ifNull: ['$_at', null] }, present._at ?? null] });
    }
    const changed = await updateOne(database, store, scope, key, { conditions, nowMs, fields: merged });
    if (changed !== null) return changed;
    const present = await getChangeable(database, store, scope, key);
    if (bytesOf(toDocument(store, present)) > room) {
      throw tooLarge(`the entity would become larger than ${LIMITS.entityStoredBytes} bytes`);
    }
  }
  throw unavailable('the entity is being changed by others too often; nothing was changed');
}

const bytesOf = (document: Document): number => toBson(document, DOCUMENT_BYTES)?.length ?? DOCUMENT_BYTES;

/** An entity that the scope may change. Throws 404, or 403 where it is built in. */
export async function getChangeable(database: Database, store: Store, scope: Scope, key: string): Promise<Entity> {
  const present = await getEntity(database, store, scope, key);
  if (present._builtin === true) throw forbidden('built in: it can be read, not changed');
  return present;
}

const notBuiltIn = (store: Store): Document[] => (store.builtIn ? [{ $ne: ['$_builtin', true] }] : []);

/** Fields and what they become, as expressions over the entity as it is; under conditions of the same kind. */
interface Edit {
  readonly conditions: readonly Document[];
  readonly fields: Document;
  readonly nowMs: number;
}

/** The `_id` of the entity that was changed; null where a condition is not met, or the scope sees none. */
async function updateOne(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  edit: Edit,
): Promise<string | null> {
  const collection = collectionName(store.name);
  const update = toUpdate(edit, visibleExpression(store, scope));
  const named = readKey(store, scope, key);
  if (named === null) return null;
  const [field, value] = named;
  const id = field === '_id' ? value : await findId(database, store, field, value);
  if (id === null) return null;
  const filter = { _id: new ObjectId(id), ...(field !== '_id' && { [field]: value }) };
  return (await updateDocument(database, { collection, filter, update })) ? id : null;
}

/**
 * An entity that does not meet the conditions becomes what it is, which is no change: nothing but `_id` is in the filter, so
 * that the database need not plan how to find it (0.19 ms of its time for each, instead of 0.31). `_at` always grows, so
 * that every change is one.
 */
function toUpdate({ conditions, fields, nowMs }: Edit, visible: Document): Document[] {
  const _at = { $max: [nowMs, { $add: [{ $ifNull: ['$_at', 0] }, 1] }] };
  const after = { $mergeObjects: ['$$ROOT', Object.assign({}, fields, { _at })] };
  return [{ $replaceWith: { $cond: [{ $and: [visible, ...conditions] }, after, '$$ROOT'] } }];
}

async function findId(database: Database, store: Store, field: 'id', value: string): Promise<string | null> {
  const found = await findStored(database, store, field, value);
  return found === null ? null : readObjectId(found);
}

/**
 * Adds a user to those an entity is shared with, or takes one away. Gives its `_id`. Throws 404, 403 (built in), 400 (too
 * many).
 */
export async function shareEntity(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  share: { userId: string; shared: boolean; nowMs: number },
): Promise<string> {
  const user = new ObjectId(share.userId);
  const present = { $ifNull: ['$access', []] };
  const access = share.shared
    ? { $cond: [{ $in: [user, present] }, present, { $concatArrays: [present, [user]] }] }
    : { $filter: { input: present, cond: { $ne: ['$$this', user] } } };
  const conditions = [...notBuiltIn(store), { $lte: [{ $size: access }, LIMITS.sharedUsers] }];
  const edit = { conditions, fields: { access }, nowMs: share.nowMs };
  const changed = await updateOne(database, store, scope, key, edit);
  if (changed !== null) return changed;
  await getChangeable(database, store, scope, key);
  throw badRequest(`user: the entity is shared with ${LIMITS.sharedUsers} users already`);
}

/** Removes an entity and gives what it was. Throws 404, 403 (built in). */
export async function removeEntity(database: Database, store: Store, scope: Scope, key: string): Promise<Entity> {
  const mayGo = store.builtIn ? { _builtin: { $ne: true } } : {};
  const removed = await atKey(store, scope, key, (filter) =>
    translated(() => collectionOf(database, store).findOneAndDelete({ ...filter, ...mayGo })),
  );
  if (removed !== null) return toEntity(store, removed);
  await getChangeable(database, store, scope, key);
  throw notFound();
}
