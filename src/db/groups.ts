/** The tree of groups: moving a group moves everything below it, at once for everyone who reads. */
import { type ClientSession, type Document, ObjectId } from 'mongodb';
import { badRequest, notFound } from '../errors.js';
import type { Scope } from '../model/access.js';
import { LIMITS } from '../model/limits.js';
import { STORES } from '../model/stores.js';
import { collectionName, type Database } from './connect.js';
import { innerName } from './custom-stores.js';
import { translated } from './documents.js';

export interface GroupMove {
  readonly groupId: string;
  readonly parentId: string;
  readonly nowMs: number;
}

/** Every collection whose entities belong to groups. */
export async function ownedCollections(database: Database): Promise<string[]> {
  const custom = await translated(() => database.db.collection('stores').find().project({ name: 1 }).toArray());
  return [...STORES.keys(), ...custom.map(({ _id, name }) => innerName(name, String(_id)))].map(collectionName);
}

/**
 * Those in which something belongs to the group or to one below it. Of a thousand stores most have nothing: they are left out of
 * transactions. What comes to one of them meanwhile is corrected afterwards.
 */
async function collectionsWithin(database: Database, groupId: string): Promise<string[]> {
  const collections = await ownedCollections(database);
  const within = { branch: new ObjectId(groupId) };
  const found: string[] = [];
  for (let at = 0; at < collections.length; at += LIMITS.storesAtOnce) {
    const some = collections.slice(at, at + LIMITS.storesAtOnce);
    const firsts = await Promise.all(
      some.map((name) => translated(() => database.db.collection(name).findOne(within, { projection: { _id: 1 } }))),
    );
    found.push(...some.filter((_, nth) => firsts[nth] !== null));
  }
  return found;
}

/**
 * Gives a group another parent: in one transaction the group, those below it, and every entity of theirs get their new
 * `branch`. Throws 400 where the parent is not the scope's, or below the group itself, or too deep; 404.
 */
export async function moveGroup(database: Database, scope: Scope, move: GroupMove): Promise<void> {
  const collections = await collectionsWithin(database, move.groupId);
  await translated(
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
  const [id, groups] = [new ObjectId(groupId), database.db.collection('groups')];
  await holdTree(database, session);
  const within = { branch: new ObjectId(scope.groupId) };
  const group = await groups.findOne({ _id: id, ...within }, { session });
  if (group === null) throw notFound();
  const parent = await groups.findOne({ _id: new ObjectId(parentId), ...within }, { session });
  if (parent === null) throw badRequest('parent: not a group of yours');
  if (holds(parent.branch, id)) throw badRequest('parent: is the group itself, or below it');
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
 * Two moves at a time could each be right and together make a ring, and a correction could bring back what a move has
 * just changed: the one that writes this second begins anew.
 */
async function holdTree(database: Database, session: ClientSession): Promise<void> {
  await database.db
    .collection<{ _id: string }>('installation')
    .updateOne({ _id: 'groups' }, { $inc: { moves: 1 } }, { upsert: true, session });
}

const holds = (branch: readonly ObjectId[], id: ObjectId): boolean => branch.some((one) => one.equals(id));

// What stands above the group is replaced, the group and what is below it stays.
function rebased(above: readonly ObjectId[], id: ObjectId): Document {
  return {
    $concatArrays: [above, { $slice: ['$branch', { $indexOfArray: ['$branch', id] }, LIMITS.branchDepth] }],
  };
}

/**
 * Corrects the `branch` of what was being created in the group, or below it, while it was moved: groups and entities that
 * had read the old one. Changes nothing where every branch is true.
 */
export async function settleBranches(database: Database, groupId: string): Promise<void> {
  const collections = await collectionsWithin(database, groupId);
  await translated(
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
  await holdTree(database, session);
  const within = { branch: new ObjectId(groupId) };
  const branches = trueBranches(await database.db.collection('groups').find(within, { session }).toArray(), groupId);
  for (const name of collections) {
    const collection = database.db.collection(name);
    const kinds = [{ $match: within }, { $group: { _id: { group: '$group', branch: '$branch' } } }];
    for (const { _id } of await collection.aggregate(kinds, { session }).toArray()) {
      const branch = branches.get(String(_id.group));
      if (branch === undefined || branch.join() === _id.branch.join()) continue;
      const untrue = { $and: [within, { group: _id.group }, { branch: _id.branch }] };
      await collection.updateMany(untrue, { $set: { branch } }, { session });
    }
  }
}

/** The chain of each group from this one downwards, by the parents: those below may have been made with an old one. */
function trueBranches(groups: readonly Document[], groupId: string): Map<string, ObjectId[]> {
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

/** The same for every group that was moved since: a process that died may have left it undone. */
export async function settleMoves(database: Database, sinceMs: number): Promise<void> {
  const moved = { _moved: { $gte: sinceMs } };
  const groups = await translated(() => database.db.collection('groups').find(moved).project({ _id: 1 }).toArray());
  for (const { _id } of groups) await settleBranches(database, String(_id));
}

/** How many entities of each store belong to the group or to one below it, the group itself aside. */
export async function countContents(database: Database, groupId: string): Promise<{ store: string; count: number }[]> {
  // What was done stays in the journals after its group; it keeps no group alive.
  const collections = (await collectionsWithin(database, groupId)).filter((name) => !JOURNALS.has(name));
  const id = new ObjectId(groupId);
  const counts = await Promise.all(
    collections.map(async (name) => ({
      store: name.replace(/^custom\.([^.]*).*$/, '$1'),
      count: await translated(
        () => database.db.collection(name).countDocuments({ branch: id, _id: { $ne: id } }),
        LIMITS.databaseOperationMs,
      ),
    })),
  );
  return counts.filter(({ count }) => count > 0);
}

const JOURNALS: ReadonlySet<string> = new Set(['commands', 'audit']);
