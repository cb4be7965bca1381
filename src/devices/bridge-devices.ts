/** Records which devices publish through the bridged broker: they also receive commands there. */
import { ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

const COLLECTION = 'brokered';

/** A device that publishes through the broker. */
export interface BridgeDevice {
  readonly objectId: string;
  /** Where OwnTracks expects its commands, if the last message was one of OwnTracks; null otherwise. */
  readonly ownTracksTopic: string | null;
}

/** Returns whether the device is new. */
export async function recordBridgeDevice(
  database: Database,
  { objectId, ownTracksTopic }: BridgeDevice,
): Promise<boolean> {
  const filter = { _id: new ObjectId(objectId) };
  const update = ownTracksTopic === null ? { $unset: { ownTracksTopic: '' } } : { $set: { ownTracksTopic } };
  const { upsertedCount } = await mapDriverErrors(() =>
    database.db.collection(COLLECTION).updateOne(filter, update, { upsert: true }),
  );
  return upsertedCount > 0;
}

/** Null for a device that does not publish through the broker. */
export async function findBridgeDevice(database: Database, objectId: string): Promise<BridgeDevice | null> {
  const filter = { _id: new ObjectId(objectId) };
  const found = await mapDriverErrors(() => database.db.collection(COLLECTION).findOne(filter));
  return found === null ? null : { objectId, ownTracksTopic: found.ownTracksTopic ?? null };
}

/** The objects of the next devices after `after`, in order. */
export async function listBridgeDevices(database: Database, after: string | null): Promise<string[]> {
  const filter = after === null ? {} : { _id: { $gt: new ObjectId(after) } };
  const options = { sort: { _id: 1 }, limit: LIMITS.brokerCheckBatch } as const;
  const found = await mapDriverErrors(() => database.db.collection(COLLECTION).find(filter, options).toArray());
  return found.map(({ _id }) => String(_id));
}
