/** Limits of reading long histories. A part of `LIMITS`. */
import { DAY_MS, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS } from './units.js';

export const HISTORY_LIMITS = {
  // Streams of packets, read in batches. The batches of all streams alternate, so that a long one blocks no other.
  streamBatchPackets: 5_000,
  streamBatchesAtOnce: 2,
  streamBatchesPerCaller: 1,
  // How long a stream waits for an unavailable database after its last batch.
  streamPatienceMs: 5 * SECOND_MS,
  // Concurrent series; others wait.
  concurrentSeries: 16,
  historiesReadPerCaller: 2,
  // Bounds of one series request, and how long it may occupy the database and the process.
  seriesPoints: 1_000,
  seriesPointsMax: 10_000,
  seriesParameters: 20,
  seriesMatches: 100,
  seriesFunctions: 10,
  seriesObjects: 100,
  seriesCells: 1_000_000,
  seriesValues: 1_000_000,
  seriesMs: 15 * SECOND_MS,
  // How many packets before the interval are searched for the values at its beginning.
  seriesPacketsBefore: 10_000,
  // Reports: what one may cover, how much it may read, and what JSON shows of it.
  reportObjects: 1_000,
  reportIntervalMs: 366 * DAY_MS,
  reportBuckets: 400,
  reportGeofences: 1_000,
  reportStates: 50,
  reportGapMs: HOUR_MS,
  reportPackets: 20_000_000,
  reportMs: MINUTE_MS,
  reportRows: 10_000,
  // All rows of a report, and those of one object, which are in memory together. The points of all geofences, and how many of them are
  // read at a time.
  reportAllRows: 2_000_000,
  reportObjectRows: 50_000,
  reportFencePoints: 200_000,
  reportFencesRead: 20,
  // A report is sent in pieces: when so much of it is written, or after so long.
  reportPieceBytes: 64 * KIB,
  reportPieceMs: 5 * SECOND_MS,
  // The latest value of each parameter: objects of one request, packets searched per object, and packets per batch.
  latestObjects: 100,
  latestPackets: 1_000,
  latestParameters: 2_000,
  latestBatchObjects: 10,
  latestBatchPackets: 100,
  // A bucket of packed history: its packets, and their bytes as rows.
  bucketPackets: 1_000,
  bucketBytes: 2 * MIB,
  // That there are no buckets is known for so long: a step of packing waits for longer. Copies of packets that are younger than a day are looked
  // for in buckets only where `PACK_AFTER` is less.
  packAfterMinMs: SECOND_MS,
  packedAgeMs: DAY_MS,
  bucketsKnownMs: 30 * SECOND_MS,
  // A read of buckets: how many are looked for and fetched at once, and how many of which the statistics are enough; the bytes of packets that
  // it keeps, and of those that the database selects among at once, or sorts.
  bucketSpansRead: 32,
  bucketsRead: 8,
  bucketHeadsRead: 64,
  packedReadBytes: 8 * MIB,
  evaluatedBytes: 256 * KIB,
  packedSortBytes: 12 * MIB,
  // Look-ups of packets by `_id` that need many buckets: how many read at once, how many wait, and how many of an object.
  packedNamesAtOnce: 2,
  packedNamesWaiting: 1_000,
  packedNamesWaitingPerCaller: 4,
  // Packing: the rows of an object that are planned together, and their bytes. What is stored waits longer than an insert may take, so many steps
  // at a time. So many packets a second are made to count. The least pause between two passes, and the objects of one.
  packingRows: 2_000,
  packingBytes: 8 * MIB,
  packingSettleMs: 60 * SECOND_MS,
  packingStepsWaiting: 2_000,
  packingStepsPending: 10_000,
  packingPacketsPerSecond: 8_000,
  packingPauseMs: 60 * SECOND_MS,
  packingObjects: 500_000,
  // Objects of which something cannot be packed: how many of them fail before a pass ends, how long one is left out at most, and how many are.
  packingFailedObjects: 100,
  packingRestMaxMs: 7 * DAY_MS,
  packingObjectsResting: 100_000,
} as const;
