/** Which devices were heard of through a broker: there they listen for commands as well. */
import { ObjectId } from 'mongodb';
import type { Database } from './connect.js';
import { translated } from './documents.js';

const COLLECTION = 'brokered';

/** Remembers it; true when that is new. */
export async function noteBehindBroker(database: Database, objectId: string): Promise<boolean> {
  const filter = { _id: new ObjectId(objectId) };
  const { upsertedCount } = await translated(() =>
    database.db.collection(COLLECTION).updateOne(filter, { $setOnInsert: filter }, { upsert: true }),
  );
  return upsertedCount > 0;
}

export async function isBehindBroker(database: Database, objectId: string): Promise<boolean> {
  const filter = { _id: new ObjectId(objectId) };
  return (await translated(() => database.db.collection(COLLECTION).countDocuments(filter, { limit: 1 }))) > 0;
}
