/** Inserts packets. While their collection is exchanged for a compressed one, it refuses all inserts for a moment. */
import { setTimeout as wait } from 'node:timers/promises';
import { MongoServerError } from 'mongodb';
import { unavailable } from '../../errors.js';
import { LIMITS } from '../../model/limits.js';
import type { Database } from '../driver/client.js';
import { insertTogether, type Write, type WriteOutcome } from '../driver/retryable-write.js';
import { PACKETS } from './packets.js';

/** DocumentValidationFailure. The collection of packets has no other rule than that of `db/compression/`. */
const VALIDATION_FAILED = 121;

/**
 * Inserts packets and returns their outcomes in order. Waits while the collection refuses inserts, and inserts the refused packets
 * then. If that lasts too long, the outcome of each refused one is 503: it was not stored.
 */
export async function insertPackets({ db }: Database, writes: readonly Write[]): Promise<WriteOutcome<null>[]> {
  const lastMs = performance.now() + LIMITS.databaseAnswerMs - LIMITS.databaseRetryMs;
  const outcomes = await insertTogether(db, PACKETS, writes);
  while (outcomes.some(isRefused)) {
    const refused = outcomes.flatMap((outcome, index) => (isRefused(outcome) ? [index] : []));
    if (performance.now() > lastMs)
      return outcomes.map((outcome) => (isRefused(outcome) ? { error: tooLong() } : outcome));
    await wait(LIMITS.insertRetryMs);
    const again = await insertTogether(
      db,
      PACKETS,
      refused.map((index) => writes[index] as Write),
    );
    for (const [position, index] of refused.entries()) outcomes[index] = again[position] as WriteOutcome<null>;
  }
  return outcomes;
}

const tooLong = () => unavailable('the packets are being compressed: send again');

const isRefused = (outcome: WriteOutcome<null>): boolean =>
  'error' in outcome && outcome.error instanceof MongoServerError && outcome.error.code === VALIDATION_FAILED;
