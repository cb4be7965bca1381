/** Records which devices publish through the bridged broker: they also receive commands there. */
import { ObjectId } from 'mongodb';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';

const COLLECTION = 'brokered';

/** Returns whether the device is new. */
export async function recordBridgeDevice(database: Database, objectId: string): Promise<boolean> {
  const filter = { _id: new ObjectId(objectId) };
  const { upsertedCount } = await mapDriverErrors(() =>
    database.db.collection(COLLECTION).updateOne(filter, { $setOnInsert: filter }, { upsert: true }),
  );
  return upsertedCount > 0;
}

export async function isBridgeDevice(database: Database, objectId: string): Promise<boolean> {
  const filter = { _id: new ObjectId(objectId) };
  return (await mapDriverErrors(() => database.db.collection(COLLECTION).countDocuments(filter, { limit: 1 }))) > 0;
}
