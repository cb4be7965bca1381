/** Records which devices publish through the bridged broker: they also receive commands there. */
import { ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

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

/** The objects of the next devices after `after`, in order. */
export async function listBridgeDevices(database: Database, after: string | null): Promise<string[]> {
  const filter = after === null ? {} : { _id: { $gt: new ObjectId(after) } };
  const options = { sort: { _id: 1 }, limit: LIMITS.brokerCheckBatch } as const;
  const found = await mapDriverErrors(() => database.db.collection(COLLECTION).find(filter, options).toArray());
  return found.map(({ _id }) => String(_id));
}
