/** Looks up single entities by key, and checks their visibility on the stored document. */
import { type Document, ObjectId } from 'mongodb';
import { objectNamed, type Scope } from '../../../core/access.js';
import { isId } from '../../../core/entity.js';
import { LIMITS } from '../../../core/limits.js';
import { isValidOwnId, toOwnId } from '../../../core/own-id.js';
import { builtInStore, type Store } from '../../../core/stores.js';
import { rawBatches } from '../bson/raw-batches.js';
import { readObjectId, readText } from '../bson/reader.js';
import { COMMITTED_READ, type Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import { collectionName, collectionOf } from './collections.js';
import { projectionOf } from './mapping.js';
import { isVisible } from './visibility.js';

export type KeyField = '_id' | 'id';

/**
 * Parses a key: `_id`, or for objects and sources also the own `id` (docs/reference/stores.md); null for an invalid key. For the user
 * of a device, and for a token that names objects, an own id always means that object, even if another object has the id by now.
 */
function parseKey(store: Store, scope: Scope, key: string): [KeyField, string] | null {
  if (isId(key)) return ['_id', key.toLowerCase()];
  if (!store.unique.includes('id')) return null;
  const ownId = toOwnId(key);
  if (!isValidOwnId(ownId)) return null;
  const named = store.name === 'objects' ? objectNamed(scope, ownId) : null;
  return named === null ? ['id', ownId] : ['_id', named];
}

/**
 * Like `parseKey`; a key that is not in the form of own ids may also be one that was stored before that form was required. An entity
 * with the id in the right form comes first.
 */
export async function resolveKey(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
): Promise<[KeyField, string] | null> {
  const named = parseKey(store, scope, key);
  if (named === null || named[0] === '_id' || named[1] === key) return named;
  const [present, former] = await Promise.all([
    findStored(database, store, 'id', named[1]),
    findStored(database, store, 'id', key),
  ]);
  const id = present === null && former !== null ? readObjectId(former) : null;
  return id === null ? named : ['_id', id];
}

/** `isCommitted`: only what a majority has, which no election undoes. Needed where something follows from the right to see it. */
export interface LookupOptions {
  readonly isCommitted?: boolean;
}

/** Finds the visible entity with this key, without hidden fields. */
export async function findByKey(
  database: Database,
  store: Store,
  scope: Scope,
  key: string,
  options: LookupOptions = {},
): Promise<Uint8Array | null> {
  const named = await resolveKey(database, store, scope, key);
  const document = named === null ? null : await findStored(database, store, ...named, options);
  if (document === null) return null;
  return isVisible(store, scope, document) || (await isVisibleToOwner(database, store, scope, document))
    ? document
    : null;
}

/** Finds the `_id` of the visible object with this key. */
export async function findObjectId(database: Database, scope: Scope, key: string): Promise<string | null> {
  const document = await findByKey(database, builtInStore('objects'), scope, key);
  return document === null ? null : readObjectId(document);
}

/** Whether the creator of an entity that follows an object may see it. The deciding field is hidden, so this needs a query. */
export async function isVisibleToOwner(
  database: Database,
  store: Store,
  scope: Scope,
  document: Uint8Array,
): Promise<boolean> {
  if (!store.followsObject || readObjectId(document, 'owner') !== scope.userId) return false;
  const filter = { _id: new ObjectId(readObjectId(document) ?? ''), _withoutOwner: { $ne: true } };
  const options = { projection: { _id: 1 } } as const;
  return (await mapDriverErrors(() => collectionOf(database, store).findOne(filter, options))) !== null;
}

/** Finds an entity without a permission check, which is left to the caller. */
export async function findStored(
  database: Database,
  store: Store,
  field: KeyField,
  value: string,
  { isCommitted = false }: LookupOptions = {},
): Promise<Uint8Array | null> {
  const group = `${store.name}.${field}${isCommitted ? ' committed' : ''}`;
  const found = await database.batch(group, [value], (values: string[]) =>
    findAll(database, store, field, { values: [...new Set(values)], isCommitted }),
  );
  return found.get(value) ?? null;
}

async function findAll(
  database: Database,
  store: Store,
  field: KeyField,
  { values, isCommitted }: { values: readonly string[]; isCommitted: boolean },
): Promise<Map<string, Uint8Array>> {
  const wanted: unknown[] = field === '_id' ? values.map((value) => new ObjectId(value)) : [...values];
  const projection = projectionOf(store, null);
  const command: Document = {
    find: collectionName(store.name),
    filter: { [field]: { $in: wanted } },
    // One more than there can be: after a full batch the cursor would stay open.
    batchSize: wanted.length + 1,
    ...(projection && { projection }),
    ...(isCommitted && COMMITTED_READ),
  };
  const found = new Map<string, Uint8Array>();
  for await (const { documents } of rawBatches(database, command, { withinMs: LIMITS.databaseAnswerMs })) {
    for (const document of documents) found.set(keyIn(document, field), document);
  }
  return found;
}

function keyIn(document: Uint8Array, field: KeyField): string {
  return field === '_id' ? (readObjectId(document) ?? '') : readText(document, field);
}
