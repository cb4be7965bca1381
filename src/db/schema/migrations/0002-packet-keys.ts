/**
 * New packets have keys that include their object's `_id` (db/bson/packet-key.ts). Existing packets keep their keys and are read
 * like the others. Only the time of this migration is needed: a packet stored before it may be sent again after it.
 */
import type { Migration } from './migration.js';

export const packetKeys: Migration = {
  name: '0002-packet-keys',
  run: async () => undefined,
};
