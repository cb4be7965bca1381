/** A packet that is sent again is looked up in buckets before it is inserted: a step of packing waits until both are over. */
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../src/core/limits.js';

test('commits a step of packing later than an insert can end that has not seen its buckets', () => {
  const { bucketsKnownMs, databaseAnswerMs, databaseOperationMs, packingSettleMs } = LIMITS;
  // What was known of buckets, the look-up, the wait in the queue, and a command that nobody waits for any more.
  const latestMs = bucketsKnownMs + databaseAnswerMs + databaseAnswerMs + databaseOperationMs;
  expect(packingSettleMs).toBeGreaterThan(latestMs);
});
