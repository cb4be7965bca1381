/** How entities of any store are written: created, changed, shared, removed. Each but creation asks for a scope. */
import { BSON, type Document, type Filter, ObjectId } from 'mongodb';
import { badRequest, forbidden, notFound, tooLarge, unavailable } from '../errors.js';
import type { Scope } from '../model/access.js';
import { type Entity, merge, ownFields } from '../model/entity.js';
import type { JsonObject } from '../model/json.js';
import { LIMITS } from '../model/limits.js';
import type { Store } from '../model/stores.js';
import { collectionOf, type Database } from './connect.js';
import { toDocument, toEntity, toMergeUpdate, translated } from './documents.js';
import { atKey, getEntity } from './entities.js';
import { insertDocument } from './inserts.js';

const CHECKED_ATTEMPTS = 8;

/** Stores a new entity with all its fields. Throws 409 where a unique field is taken. */
export async function createEntity(database: Database, store: Store, entity: Entity): Promise<Entity> {
  const document = toDocument(store, entity);
  // The database removes a token when it ends; its clock for that is a date.
  if (store.name === 'tokens') document._expires = new Date(entity.expiresAt as number);
  if (BSON.calculateObjectSize(document) > LIMITS.entityStoredBytes) {
    throw tooLarge(`the entity would be larger than ${LIMITS.entityStoredBytes} bytes`);
  }
  await insertDocument(database, collectionOf(database, store), document);
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
    const guard: Filter<Document> = { ...notBuiltIn(store), $expr: { $lte: [{ $bsonSize: '$$ROOT' }, room] } };
    if (store.checkWhole !== null) {
      const present = await getEntity(database, store, scope, key);
      store.checkWhole(ownFields(store, merge(present, change.patch)));
      // What was checked is what is changed: a change by another in between makes this attempt miss.
      guard._at = present._at ?? null;
    }
    const changed = await updateOne(database, store, scope, key, { guard, update: [{ $set: toMergeUpdate(patch) }] });
    if (changed !== null) return toEntity(store, changed);
    const present = await getChangeable(database, store, scope, key);
    if (BSON.calculateObjectSize(toDocument(store, present)) > room) {
      throw tooLarge(`the entity would become larger than ${LIMITS.entityStoredBytes} bytes`);
    }
  }
  throw unavailable('the entity is being changed by others too often; nothing was changed');
}

// Why nothing was changed or removed: 404 unless visible, 403 if built in.
async function getChangeable(database: Database, store: Store, scope: Scope, key: string): Promise<Entity> {
  const present = await getEntity(database, store, scope, key);
  if (present._builtin === true) throw forbidden('built in: it can be read, not changed');
  return present;
}

const notBuiltIn = (store: Store): Filter<Document> => (store.builtIn ? { _builtin: { $ne: true } } : {});

async function updateOne(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  { guard, update }: { guard: Filter<Document>; update: Document | Document[] },
): Promise<Document | null> {
  const collection = collectionOf(database, store);
  const attempted = await atKey(store, scope, key, (filter) =>
    translated(async () => {
      const document = await collection.findOneAndUpdate({ ...filter, ...guard }, update, { returnDocument: 'after' });
      // A guard that holds the change back must not let it fall on another entity that the key could mean as well.
      return document !== null || (await collection.countDocuments(filter, { limit: 1 })) > 0 ? { document } : null;
    }),
  );
  return attempted?.document ?? null;
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
  const guard = { ...notBuiltIn(store), ...room };
  const changed = await updateOne(database, store, scope, key, { guard, update });
  if (changed !== null) return toEntity(store, changed);
  await getChangeable(database, store, scope, key);
  throw badRequest(`user: the entity is shared with ${LIMITS.sharedUsers} users already`);
}

/** Removes an entity and gives what it was. Throws 404, 403 (built in). */
export async function removeEntity(database: Database, store: Store, scope: Scope, key: string): Promise<Entity> {
  const removed = await atKey(store, scope, key, (filter) =>
    translated(() => collectionOf(database, store).findOneAndDelete({ ...filter, ...notBuiltIn(store) })),
  );
  if (removed !== null) return toEntity(store, removed);
  await getChangeable(database, store, scope, key);
  throw notFound();
}
