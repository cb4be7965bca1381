/** Whether all instances that take messages of devices wait while the collection of packets refuses inserts. */
import { LIMITS } from '../../model/limits.js';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';

/** Why nothing is done then. */
export const OLDER_INSTANCE = 'an instance of an older version is running, or was until a moment ago';

/**
 * Whether an instance of a version runs that does not know this refusal: it would take a refused packet for an invalid one, and
 * acknowledge the MQTT message without storing it. Such instances have a heartbeat, if they take MQTT messages at all.
 */
export async function hasOlderInstance({ db }: Database): Promise<boolean> {
  const isAlive = { $gte: ['$seen', { $subtract: ['$$NOW', LIMITS.presenceSilentMs] }] };
  const older = { waits: { $ne: true }, $expr: isAlive };
  return (await mapDriverErrors(() => db.collection('instances').findOne(older))) !== null;
}
