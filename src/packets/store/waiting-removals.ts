/** The removals of packets that were asked for and are not done. */
import { ObjectId } from 'mongodb';
import type { Database } from '../../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../platform/mongo/driver/errors.js';

export const REMOVALS = 'removals';

/** Whether packets of the object are to be removed: which rows are the latest ones then changes, and nothing of it is packed. */
export async function isRemovalWaiting({ db }: Database, objectId: string): Promise<boolean> {
  const one = { object: new ObjectId(objectId) };
  return (await mapDriverErrors(() => db.collection(REMOVALS).findOne(one, { projection: { _id: 1 } }))) !== null;
}
