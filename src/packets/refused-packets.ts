/**
 * The last packets and messages of each object that could not be stored, and why: devices seldom look at answers, and a
 * message over MQTT has none.
 */
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { createLastRefused, forgetLastRefused, type LastRefused, type LastRefusedOptions } from './last-refused.js';
import { cutReason } from './reasons.js';

/** A packet or a message that could not be stored. */
export interface RefusedPacket {
  /** When it arrived. */
  readonly time: number;
  readonly via: 'http' | 'mqtt';
  /** The topic of the message; null over HTTP. */
  readonly topic: string | null;
  /** The place in the array that was sent; null for a single packet. */
  readonly index: number | null;
  readonly reason: string;
}

/** By the `_id` of the object. */
export type RefusedPackets = LastRefused<RefusedPacket>;

export type RefusedPacketsOptions = Pick<LastRefusedOptions<RefusedPacket>, 'database' | 'log' | 'now'>;

const COLLECTION = 'refusedPackets';

export const createRefusedPackets = (options: RefusedPacketsOptions): RefusedPackets =>
  createLastRefused({
    ...options,
    collection: COLLECTION,
    perEntity: LIMITS.refusedPerObject,
    pending: LIMITS.refusedPending,
    delayMs: LIMITS.refusedDelayMs,
    keptMs: LIMITS.refusedKeptMs,
    shorten: (refused) => ({
      ...refused,
      topic: refused.topic?.slice(0, LIMITS.nameCharacters) ?? null,
      reason: cutReason(refused.reason),
    }),
  });

/** Of an object that was removed. */
export const forgetRefused = (database: Database, objectId: string): Promise<void> =>
  forgetLastRefused(database, COLLECTION, objectId);
