/**
 * Keeps the queue of each handler within its bound. Adds up what this instance stores, and counts a queue only when it may have
 * exceeded its bound since the last count, because a count takes as long as the queue is.
 */

import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import type { Delivery } from './deliveries.js';
import { countQueue, giveUpOldest, type QueueSize, trimDead } from './delivery-upkeep.js';

export interface QueueBoundOptions {
  readonly database: Database;
  /** Told of messages that were given up, and of records of dead ones that were removed. */
  readonly onOverflow: (handlerId: string, dead: number, removed: number) => void;
  readonly now: () => number;
}

export interface QueueBound {
  /** Messages that this instance has stored. */
  add(deliveries: readonly Pick<Delivery, 'handlerId' | 'body'>[]): void;
  /** Counts the queues that may be too long, and gives up what is too much. Throws 503. */
  check(signal: AbortSignal): Promise<void>;
  /** Forgets handlers that are gone. */
  keepOnly(isPresent: (handlerId: string) => boolean): void;
}

interface Growth {
  /** Since the queue was counted. */
  rows: number;
  bytes: number;
  /** By how much it may grow until it is counted again. */
  room: QueueSize;
}

const NO_ROOM: QueueSize = { rows: 0, bytes: 0 };
const REASON = 'the queue of the handler was full';

export function createQueueBound(options: QueueBoundOptions): QueueBound {
  const growths = new Map<string, Growth>();
  return {
    add(deliveries) {
      for (const { handlerId, body } of deliveries) {
        const growth = growths.get(handlerId) ?? { rows: 0, bytes: 0, room: NO_ROOM };
        growth.rows++;
        growth.bytes += body.length;
        growths.set(handlerId, growth);
      }
    },
    async check(signal) {
      for (const [handlerId, growth] of growths) {
        if (growth.rows <= growth.room.rows && growth.bytes <= growth.room.bytes) continue;
        if (signal.aborted) return;
        const { rows, bytes } = growth;
        growth.room = roomOf(await shorten(options, handlerId));
        growth.rows -= rows;
        growth.bytes -= bytes;
      }
    },
    keepOnly(isPresent) {
      for (const handlerId of growths.keys()) if (!isPresent(handlerId)) growths.delete(handlerId);
    },
  };
}

/** Returns how long the queue is then. */
async function shorten({ database, onOverflow, now }: QueueBoundOptions, handlerId: string): Promise<QueueSize> {
  const size = await countQueue(database, handlerId);
  const excess = beyond(size);
  if (excess.rows === 0 && excess.bytes === 0) return size;
  const dead = await giveUpOldest(database, handlerId, { excess, error: REASON, nowMs: now() });
  onOverflow(handlerId, dead, await trimDead(database, handlerId));
  return { rows: LIMITS.webhookQueueRows, bytes: LIMITS.webhookQueueBytes };
}

const beyond = ({ rows, bytes }: QueueSize): QueueSize => ({
  rows: Math.max(0, rows - LIMITS.webhookQueueRows),
  bytes: Math.max(0, bytes - LIMITS.webhookQueueBytes),
});

/** Assumes that other instances store as much in every other partition. */
const roomOf = ({ rows, bytes }: QueueSize): QueueSize => ({
  rows: Math.max(0, LIMITS.webhookQueueRows - rows) / LIMITS.partitions,
  bytes: Math.max(0, LIMITS.webhookQueueBytes - bytes) / LIMITS.partitions,
});
