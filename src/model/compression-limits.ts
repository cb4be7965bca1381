/** Limits of the compression of stored packets. A part of `LIMITS`. */
import { MINUTE_MS, SECOND_MS } from './units.js';

export const COMPRESSION_LIMITS = {
  // How often each instance looks whether there is something to do, how often where nothing can be, and after which time another
  // instance continues the work of a killed one.
  compressionCheckMs: 2 * SECOND_MS,
  compressionIdleMs: 30 * SECOND_MS,
  compressionLeaseMs: 10 * SECOND_MS,
  // Packets per transaction: copied, and compared by their keys; the pause after each one in relation to its duration.
  compressionBatch: 250,
  compressionCompareBatch: 2_000,
  compressionPauseRatio: 3,
  compressionLogMs: 30 * SECOND_MS,
  // Batches of changes that are applied before the next packets are copied or compared, and from when on the copy is late.
  compressionFollowPages: 10,
  compressionBehindMs: MINUTE_MS,
  // How long the exchange of the collections waits for a lock, and how long inserts may be refused for one attempt at it.
  compressionLockMs: 2 * SECOND_MS,
  compressionStopMs: 3 * SECOND_MS,
  // Attempts at it, before the compression is given up, and the pause before the second one; the pauses become longer.
  compressionExchanges: 10,
  compressionExchangePauseMs: 5 * SECOND_MS,
  // The pause before packets are inserted again that were refused meanwhile.
  insertRetryMs: 20,
  // Permanent errors in a row, then the compression is given up.
  compressionTries: 10,
} as const;
