/**
 * Packets are stored under keys that hold their object's `_id` as well (db/packet-key.ts). Those that are there keep theirs,
 * and are read like the others: all that is needed is the moment, since what was stored before it may be sent again after it.
 */
import type { Migration } from './migration.js';

export const packetKeys: Migration = {
  name: '0002-packet-keys',
  run: async () => undefined,
};
