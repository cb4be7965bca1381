/** What belongs to a group: asked before the group is removed. */
import { ObjectId } from 'mongodb';
import { STORES } from '../model/stores.js';
import { collectionName, type Database } from './connect.js';
import { translated } from './documents.js';

/** How many entities of each store belong to the group or to one below it, the group itself aside. */
export async function countContents(database: Database, groupId: string): Promise<{ store: string; count: number }[]> {
  const custom = await translated(() => database.db.collection('stores').find().project({ name: 1 }).toArray());
  // What was done stays in the journal of commands after its group; it keeps no group alive.
  const names = [...STORES.keys(), ...custom.map(({ name }) => name as string)].filter((name) => name !== 'commands');
  const id = new ObjectId(groupId);
  const counts = await Promise.all(
    names.map(async (store) => ({
      store,
      count: await translated(() =>
        database.db.collection(collectionName(store)).countDocuments({ branch: id, _id: { $ne: id } }),
      ),
    })),
  );
  return counts.filter(({ count }) => count > 0);
}
