/** Whether objects are online, as far as this page knows. */
import { isOnline } from './activity.js';
import type { FleetObject } from './fleet.js';
import { isLost } from './live.js';

/** How an object is shown. Whether one is online is not known without a connection. */
export type Presence = 'online' | 'unknown' | 'offline';

export function presenceOf(object: FleetObject): Presence {
  if (!isOnline(object)) return 'offline';
  return isLost.value ? 'unknown' : 'online';
}
