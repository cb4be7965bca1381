/**
 * What callers read because of the objects that they see: the models of these objects, and geofences and labels of the groups above
 * them. It gives no right to change anything.
 */
import { type Document, type Filter, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import { ROOT_GROUP_ID } from '../core/builtin.js';
import { LIMITS } from '../core/limits.js';
import { builtInStore, type Store } from '../core/stores.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { ANY_ID, collectionOf } from '../platform/mongo/schema/collections.js';
import { scopeFilter } from '../platform/mongo/schema/visibility.js';
import { findObjectIds } from './object-ids.js';

/** The first entities in the order of `_id`: all that a page without other conditions can show. */
export interface FirstEntities {
  readonly count: number;
  /** The `_id` after which they begin; null for the first one of all. */
  readonly after: string | null;
  readonly isDescending: boolean;
}

/** The filter for what the scope may read: what it sees, and what it sees because of objects. */
export async function readableFilter(database: Database, store: Store, scope: Scope): Promise<Filter<Document>> {
  return withVisible(store, scope, await throughObjects(database, store, scope));
}

/** The same for the first entities; `isWhole`: it holds for all that follow, too. */
export async function readableFirst(
  database: Database,
  store: Store,
  scope: Scope,
  first: FirstEntities,
): Promise<{ readonly filter: Filter<Document>; readonly isWhole: boolean }> {
  if (store.throughObjects !== 'model' || scope.groupId === ROOT_GROUP_ID) {
    return { filter: await readableFilter(database, store, scope), isWhole: true };
  }
  const { ofGroup, others } = await findSeenBy(database, scope);
  const found = await firstModels(database, [...ofGroup, ...others], first);
  const isWhole = found.every((models) => models.length < first.count);
  return { filter: withVisible(store, scope, anyOf(found.flat())), isWhole };
}

function withVisible(store: Store, scope: Scope, through: Filter<Document> | null): Filter<Document> {
  const visible = scopeFilter(store, scope);
  return through === null ? visible : { $or: [visible, through].flatMap((one) => one.$or ?? [one]) };
}

const anyOf = (ids: readonly ObjectId[]): Filter<Document> | null => (ids.length === 0 ? null : { _id: { $in: ids } });

/** Whether the scope sees an entity because of objects. */
export async function isReadableThroughObjects(
  database: Database,
  store: Store,
  scope: Scope,
  id: string,
): Promise<boolean> {
  if (store.throughObjects === 'model' && scope.groupId !== ROOT_GROUP_ID) return isModelOfSeen(database, scope, id);
  const through = await throughObjects(database, store, scope);
  if (through === null) return false;
  const filter = { $and: [{ _id: new ObjectId(id) }, through] };
  const find = () => collectionOf(database, store).findOne(filter, { projection: { _id: 1 } });
  return (await mapDriverErrors(find)) !== null;
}

/** Whether the scope sees an object of this model: one look-up by an index, however many models its objects have. */
async function isModelOfSeen(database: Database, scope: Scope, id: string): Promise<boolean> {
  const { ofGroup, others } = await findSeenBy(database, scope);
  const objects = collectionOf(database, builtInStore('objects'));
  const findFirst = (filter: Filter<Document>) =>
    objects.findOne({ ...filter, model: new ObjectId(id) }, { projection: { _id: 1 } });
  const found = await mapDriverErrors(() => Promise.all([...ofGroup, ...others].map(findFirst)));
  return found.some((object) => object !== null);
}

/** The filter for what the scope sees because of objects; null where there is nothing. */
async function throughObjects(database: Database, store: Store, scope: Scope): Promise<Filter<Document> | null> {
  // The first group sees everything.
  if (store.throughObjects === null || scope.groupId === ROOT_GROUP_ID) return null;
  const seen = await findSeenBy(database, scope);
  if (store.throughObjects === 'model') {
    return anyOf(await distinctIn(database, 'model', [...seen.ofGroup, ...seen.others]));
  }
  const groups = await findGroupsAbove(database, scope.groupId, seen);
  return groups.length === 0 ? null : { group: { $in: groups } };
}

/** Filters for the objects that the caller sees; each has an index with their models, the `others` with their groups, too (`OBJECT_INDEXES`). */
interface Seen {
  /** Of the caller's group and below it, whatever their owners. */
  readonly ofGroup: readonly Filter<Document>[];
  readonly others: readonly Filter<Document>[];
}

async function findSeenBy(database: Database, scope: Scope): Promise<Seen> {
  const { userId, groupId, onlyObjects } = scope;
  if (onlyObjects !== null) {
    const ids = await findObjectIds(database, scope, onlyObjects);
    return { ofGroup: [], others: [{ _id: { $in: ids.map((id) => new ObjectId(id)) } }] };
  }
  const user = new ObjectId(userId);
  return {
    ofGroup: [{ branch: new ObjectId(groupId) }],
    others: [{ owner: user }, { access: user }],
  };
}

async function findGroupsAbove(
  database: Database,
  groupId: string,
  { ofGroup, others }: Seen,
): Promise<readonly ObjectId[]> {
  const objects = collectionOf(database, builtInStore('objects'));
  const findFirst = (filter: Filter<Document>) =>
    mapDriverErrors(() => objects.findOne(filter, { projection: { _id: 1 } }));
  const [firsts, groups] = await Promise.all([
    Promise.all(ofGroup.map(findFirst)),
    distinctIn(database, 'group', others),
  ]);
  // The groups above one object of the caller's group are above all of them, or visible anyway.
  const below = [...groups, ...(firsts.some((first) => first !== null) ? [new ObjectId(groupId)] : [])];
  if (below.length === 0) return [];
  const find = () =>
    collectionOf(database, builtInStore('groups'))
      .find({ _id: { $in: below } }, { projection: { branch: 1 } })
      .toArray();
  const found = await mapDriverErrors(find, LIMITS.databaseOperationMs);
  const above = new Map(found.flatMap(({ branch }) => (branch as ObjectId[]).map((id) => [id.toHexString(), id])));
  return [...above.values()];
}

/** The values of a field of objects, by an index that skips equal ones. */
async function distinctIn(
  database: Database,
  field: 'model' | 'group',
  filters: readonly Filter<Document>[],
): Promise<ObjectId[]> {
  const objects = collectionOf(database, builtInStore('objects'));
  const options = { maxTimeMS: LIMITS.databaseOperationMs };
  const found = await mapDriverErrors(
    () => Promise.all(filters.map((filter) => objects.distinct(field, { [field]: ANY_ID, ...filter }, options))),
    LIMITS.databaseOperationMs,
  );
  return [...new Map(found.flat().map((id: ObjectId) => [id.toHexString(), id])).values()];
}

/** The first models of the objects of each filter, by an index that skips equal ones: no more are read than are asked for. */
function firstModels(
  database: Database,
  filters: readonly Filter<Document>[],
  { count, after, isDescending }: FirstEntities,
): Promise<ObjectId[][]> {
  const objects = collectionOf(database, builtInStore('objects'));
  const model = after === null ? ANY_ID : { $gt: new ObjectId(after) };
  const options = { maxTimeMS: LIMITS.databaseOperationMs };
  const read = async (filter: Filter<Document>) => {
    const stages = [{ $match: { model, ...filter } }, { $sort: { model: isDescending ? -1 : 1 } }, EACH_MODEL];
    const found = await objects.aggregate<{ _id: ObjectId }>([...stages, { $limit: count }], options).toArray();
    return found.map(({ _id }) => _id);
  };
  return mapDriverErrors(() => Promise.all(filters.map(read)), LIMITS.databaseOperationMs);
}

// After a sort, a group without more than its key is read from the index (DISTINCT_SCAN), and keeps the order.
const EACH_MODEL = { $group: { _id: '$model' } };
