/**
 * The last packets and messages of each object that could not be stored, and why: devices seldom look at answers, and a
 * message over MQTT has none. They are written together, at most once within a moment.
 */

import { ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { clock, type Timer } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
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

export interface RefusedPackets {
  record(objectId: string, refused: readonly RefusedPacket[]): void;
  /** Those of an object, the oldest first. */
  list(objectId: string): Promise<readonly RefusedPacket[]>;
  /** Stores all pending ones. */
  stop(): Promise<void>;
}

export interface RefusedPacketsOptions {
  readonly database: Database;
  readonly log: { warn(details: object, message: string): void };
  readonly now: () => number;
}

interface Stored {
  readonly _id: ObjectId;
  readonly last: RefusedPacket[];
  readonly expires: Date;
}

const storedIn = ({ db }: Database) => db.collection<Stored>('refusedPackets');

export function createRefusedPackets({ database, log, now }: RefusedPacketsOptions): RefusedPackets {
  let pending = new Map<string, RefusedPacket[]>();
  let count = 0;
  let timer: Timer | undefined;
  let storing = Promise.resolve();
  const storePending = async (): Promise<void> => {
    const taken = pending;
    pending = new Map();
    count = 0;
    if (taken.size === 0) return;
    try {
      await store(database, taken, new Date(now() + LIMITS.refusedKeptMs));
    } catch (error) {
      log.warn({ err: error, objects: taken.size }, 'failed to store why packets were refused');
    }
  };
  const flush = (): Promise<void> => {
    clock.clearTimer(timer);
    timer = undefined;
    storing = storing.then(storePending);
    return storing;
  };
  return {
    record(objectId, refused) {
      const waiting = pending.get(objectId) ?? [];
      const last = waiting.concat(refused.slice(-LIMITS.refusedPerObject).map(shorten)).slice(-LIMITS.refusedPerObject);
      const more = last.length - waiting.length;
      // Only a fault of very many devices fills it.
      if (last.length === 0 || count + more > LIMITS.refusedPending) return;
      count += more;
      pending.set(objectId, last);
      timer ??= clock.setTimeout(() => void flush(), LIMITS.refusedDelayMs);
    },
    async list(objectId) {
      await flush();
      const found = await mapDriverErrors(() => storedIn(database).findOne({ _id: new ObjectId(objectId) }));
      return found?.last ?? [];
    },
    stop: flush,
  };
}

const shorten = (refused: RefusedPacket): RefusedPacket => ({
  ...refused,
  topic: refused.topic?.slice(0, LIMITS.nameCharacters) ?? null,
  reason: cutReason(refused.reason),
});

async function store(
  database: Database,
  taken: ReadonlyMap<string, readonly RefusedPacket[]>,
  expires: Date,
): Promise<void> {
  const updates = [...taken].map(([objectId, last]) => ({
    updateOne: {
      filter: { _id: new ObjectId(objectId) },
      update: { $push: { last: { $each: [...last], $slice: -LIMITS.refusedPerObject } }, $set: { expires } },
      upsert: true,
    },
  }));
  await mapDriverErrors(() => storedIn(database).bulkWrite(updates, { ordered: false }));
}

/** Of an object that was removed. */
export async function forgetRefused(database: Database, objectId: string): Promise<void> {
  await mapDriverErrors(() => storedIn(database).deleteOne({ _id: new ObjectId(objectId) }));
}
