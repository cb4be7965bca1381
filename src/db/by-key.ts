/** Single entities by their key, as they are stored: who sees them is checked on what the database gave. */
import { type Document, ObjectId } from 'mongodb';
import type { Scope } from '../model/access.js';
import { isId } from '../model/entity.js';
import { LIMITS } from '../model/limits.js';
import { namesObject } from '../model/own-id.js';
import type { Store } from '../model/stores.js';
import { readObjectId, readText } from './bson.js';
import { collectionName, collectionOf, type Database } from './connect.js';
import { isVisible, projectionOf, translated } from './documents.js';
import { rawBatches } from './pages.js';

export type KeyField = '_id' | 'id';

/**
 * What a key names: an object's `:id` is its `_id` or its own `id` (docs/reference/stores.md), every other entity's is its `_id`;
 * null for what names nothing. To the user of a device the own id of its object means that object, whoever has it meanwhile.
 */
export function readKey(store: Store, scope: Scope, key: string): [KeyField, string] | null {
  if (isId(key)) return ['_id', key.toLowerCase()];
  if (store.name !== 'objects' || !namesObject(key)) return null;
  return scope.object?.ownId === key ? ['_id', scope.object.objectId] : ['id', key];
}

/** The entity that the scope sees under the key, without what is hidden; null when there is none. */
export async function findByKey(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
): Promise<Uint8Array | null> {
  const named = readKey(store, scope, key);
  const document = named === null ? null : await findStored(database, store, ...named);
  if (document === null) return null;
  return isVisible(store, scope, document) || (await isOwners(database, store, scope, document)) ? document : null;
}

/** Whether the scope sees what follows an object as the one who made it; what decides that is hidden, and so not read with it. */
export async function isOwners(database: Database, store: Store, scope: Scope, document: Uint8Array): Promise<boolean> {
  if (!store.followsObject || readObjectId(document, 'owner') !== scope.userId) return false;
  const seen = { _id: new ObjectId(readObjectId(document) ?? ''), _withoutOwner: { $ne: true } };
  const options = { projection: { _id: 1 } } as const;
  return (await translated(() => collectionOf(database, store).findOne(seen, options))) !== null;
}

/** Whoever may see it; for those who ask further. */
export async function findStored(
  database: Database,
  store: Store,
  field: KeyField,
  value: string,
): Promise<Uint8Array | null> {
  const found = await database.inTurn(`${store.name}.${field}`, [value], (values: string[]) =>
    findAll(database, store, field, [...new Set(values)]),
  );
  return found.get(value) ?? null;
}

async function findAll(
  database: Database,
  store: Store,
  field: KeyField,
  values: readonly string[],
): Promise<Map<string, Uint8Array>> {
  const wanted: unknown[] = field === '_id' ? values.map((value) => new ObjectId(value)) : [...values];
  const projection = projectionOf(store, null);
  const command: Document = {
    find: collectionName(store.name),
    filter: { [field]: { $in: wanted } },
    // One more than there can be: with a full batch the database would not say that there is nothing more.
    batchSize: wanted.length + 1,
    ...(projection && { projection }),
  };
  const found = new Map<string, Uint8Array>();
  for await (const { documents } of rawBatches(database, command, LIMITS.databaseAnswerMs)) {
    for (const document of documents) found.set(keyIn(document, field), document);
  }
  return found;
}

function keyIn(document: Uint8Array, field: KeyField): string {
  return field === '_id' ? (readObjectId(document) ?? '') : readText(document, field);
}
