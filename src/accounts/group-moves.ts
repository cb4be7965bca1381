/** Moves groups in their tree, with everything below them, atomically for all readers. */
import { type ClientSession, type Document, ObjectId } from 'mongodb';
import type { Scope } from '../core/access.js';
import { badRequest, notFound } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { STORES } from '../core/stores.js';
import { innerName } from '../entities/custom-stores.js';
import { COMMITTED_READ, type Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { collectionName } from '../platform/mongo/schema/collections.js';

export interface GroupMove {
  readonly groupId: string;
  readonly parentId: string;
  readonly nowMs: number;
}

/** The `_id`s of those of these groups that are the scope's own, or below it. Subscribers keep them until a change. */
export async function findGroupIds(database: Database, scope: Scope, ids: readonly string[]): Promise<string[]> {
  const filter = { _id: { $in: ids.map((id) => new ObjectId(id)) }, branch: new ObjectId(scope.groupId) };
  const groups = database.db.collection('groups');
  const found = await mapDriverErrors(() =>
    groups.find(filter, { projection: { _id: 1 }, ...COMMITTED_READ }).toArray(),
  );
  return found.map(({ _id }) => String(_id));
}

/** All collections whose entities belong to groups. */
async function ownedCollections(database: Database): Promise<string[]> {
  const custom = await mapDriverErrors(() => database.db.collection('stores').find().project({ name: 1 }).toArray());
  return [...STORES.keys(), ...custom.map(({ _id, name }) => innerName(name, String(_id)))].map(collectionName);
}

/**
 * The collections with entities of the group or of groups below it. Most of a thousand stores have none, and are left out of
 * transactions. Entities that are created in them meanwhile are corrected afterwards.
 */
async function collectionsWithin(database: Database, groupId: string): Promise<string[]> {
  const collections = await ownedCollections(database);
  const within = { branch: new ObjectId(groupId) };
  const found: string[] = [];
  for (let start = 0; start < collections.length; start += LIMITS.storesAtOnce) {
    const some = collections.slice(start, start + LIMITS.storesAtOnce);
    const firsts = await Promise.all(
      some.map((name) =>
        mapDriverErrors(() => database.db.collection(name).findOne(within, { projection: { _id: 1 } })),
      ),
    );
    found.push(...some.filter((_, index) => firsts[index] !== null));
  }
  return found;
}

/**
 * Moves a group to another parent: one transaction updates the `branch` of the group, of all groups below it, and of their
 * entities. Throws 404, or a 400 when the parent is outside the scope, below the group itself, or too deep.
 */
export async function moveGroup(database: Database, scope: Scope, move: GroupMove): Promise<void> {
  const collections = await collectionsWithin(database, move.groupId);
  await mapDriverErrors(
    () =>
      database.client.withSession((session) =>
        session.withTransaction(() => moveWithin(database, session, scope, { ...move, collections })),
      ),
    LIMITS.databaseOperationMs,
  );
  await settleBranches(database, move.groupId);
}

async function moveWithin(
  database: Database,
  session: ClientSession,
  scope: Scope,
  { groupId, parentId, nowMs, collections }: GroupMove & { collections: readonly string[] },
): Promise<void> {
  const id = new ObjectId(groupId);
  const groups = database.db.collection('groups');
  await lockTree(database, session);
  const within = { branch: new ObjectId(scope.groupId) };
  const group = await groups.findOne({ _id: id, ...within }, { session });
  if (group === null) throw notFound();
  const parent = await groups.findOne({ _id: new ObjectId(parentId), ...within }, { session });
  if (parent === null) throw badRequest('parent: not a group of yours');
  if (holds(parent.branch, id)) throw badRequest('parent: is the group itself or below it');
  const below = await groups.find({ branch: id }, { session, projection: { branch: 1 } }).toArray();
  const height = Math.max(...below.map(({ branch }) => branch.length)) - group.branch.length;
  if (parent.branch.length + 1 + height > LIMITS.branchDepth) {
    throw badRequest(`parent: groups nest at most ${LIMITS.branchDepth} deep`);
  }
  for (const name of collections) {
    await database.db.collection(name).updateMany({ branch: id }, [{ $set: { branch: rebased(parent.branch, id) } }], {
      session,
    });
  }
  const moved = { $set: { parent: parent._id, _moved: nowMs }, $max: { _at: nowMs } };
  await groups.updateOne({ _id: id }, moved, { session });
}

/**
 * Two concurrent moves could each be valid but together form a cycle, and a correction could undo a concurrent move. The write
 * conflict on this document makes the second transaction start again.
 */
async function lockTree(database: Database, session: ClientSession): Promise<void> {
  await database.db
    .collection<{ _id: string }>('installation')
    .updateOne({ _id: 'groups' }, { $inc: { moves: 1 } }, { upsert: true, session });
}

const holds = (branch: readonly ObjectId[], id: ObjectId): boolean => branch.some((one) => one.equals(id));

// Replaces the part above the group; the group and the part below it stay.
function rebased(above: readonly ObjectId[], id: ObjectId): Document {
  return {
    $concatArrays: [above, { $slice: ['$branch', { $indexOfArray: ['$branch', id] }, LIMITS.branchDepth] }],
  };
}

/**
 * Corrects the `branch` of groups and entities that were created in or below the group during its move, with the old branch.
 * Changes nothing when all branches are correct.
 */
export async function settleBranches(database: Database, groupId: string): Promise<void> {
  const collections = await collectionsWithin(database, groupId);
  await mapDriverErrors(
    () =>
      database.client.withSession((session) =>
        session.withTransaction(() => settleWithin(database, session, { groupId, collections })),
      ),
    LIMITS.databaseOperationMs,
  );
}

async function settleWithin(
  database: Database,
  session: ClientSession,
  { groupId, collections }: { groupId: string; collections: readonly string[] },
): Promise<void> {
  await lockTree(database, session);
  const within = { branch: new ObjectId(groupId) };
  const branches = computeBranches(await database.db.collection('groups').find(within, { session }).toArray(), groupId);
  for (const name of collections) {
    const collection = database.db.collection(name);
    const kinds = [{ $match: within }, { $group: { _id: { group: '$group', branch: '$branch' } } }];
    for (const { _id } of await collection.aggregate(kinds, { session }).toArray()) {
      const branch = branches.get(String(_id.group));
      if (branch === undefined || branch.join() === _id.branch.join()) continue;
      const outdated = { $and: [within, { group: _id.group }, { branch: _id.branch }] };
      await collection.updateMany(outdated, { $set: { branch } }, { session });
    }
  }
}

/** Computes the branches of this group and all groups below it from their parents, because their stored ones may be outdated. */
function computeBranches(groups: readonly Document[], groupId: string): Map<string, ObjectId[]> {
  const branches = new Map<string, ObjectId[]>();
  const below = new Map<string, Document[]>();
  for (const group of groups) below.set(String(group.parent), [...(below.get(String(group.parent)) ?? []), group]);
  const visit = (group: Document, branch: ObjectId[]): void => {
    branches.set(String(group._id), branch);
    for (const child of below.get(String(group._id)) ?? []) visit(child, [...branch, child._id]);
  };
  const top = groups.find(({ _id }) => String(_id) === groupId);
  if (top !== undefined) visit(top, top.branch);
  return branches;
}

/** Corrects the branches of all groups that were moved since then: a killed process may not have done so. */
export async function settleMoves(database: Database, sinceMs: number): Promise<void> {
  const moved = { _moved: { $gte: sinceMs } };
  const groups = await mapDriverErrors(() =>
    database.db.collection('groups').find(moved).project({ _id: 1 }).toArray(),
  );
  for (const { _id } of groups) await settleBranches(database, String(_id));
}

/** Counts the entities of each store in the group or below it, without the group itself. */
export async function countContents(database: Database, groupId: string): Promise<{ store: string; count: number }[]> {
  // Commands, alarms and security events outlive their group, and do not keep it from being removed.
  const collections = (await collectionsWithin(database, groupId)).filter((name) => !JOURNALS.has(name));
  const id = new ObjectId(groupId);
  const counts = await Promise.all(
    collections.map(async (name) => ({
      store: name.replace(/^custom\.([^.]*).*$/, '$1'),
      count: await mapDriverErrors(
        () => database.db.collection(name).countDocuments({ branch: id, _id: { $ne: id } }),
        LIMITS.databaseOperationMs,
      ),
    })),
  );
  return counts.filter(({ count }) => count > 0);
}

const JOURNALS: ReadonlySet<string> = new Set(['commands', 'alarms', 'audit']);
