/** Limits of exports, tracks, bulk requests and removals. A part of `LIMITS`. */
import { DAY_MS, MINUTE_MS, SECOND_MS } from './units.js';

export const EXPORT_LIMITS = {
  // Concurrent exports, in total and per caller; the packets that each has in memory; the time after which it yields to the event loop.
  exportsAtOnce: 64,
  exportsPerCaller: 4,
  exportBatchPackets: 2_000,
  exportSliceMs: 2,
  // Packets, values and bytes (BSON) of a row group of Parquet, all of which are in memory.
  exportGroupPackets: 10_000,
  exportGroupCells: 250_000,
  exportGroupBytes: 2 * 1_024 ** 2,
  // Columns of all row groups of a file: what describes them stays in memory until its end.
  exportChunks: 100_000,
  // Bulk requests: entities and concurrent writes of one request; concurrent requests, in total and per caller; removed objects whose
  // packets are being removed concurrently, and those that wait for it.
  bulkEntities: 1_000,
  bulkWritesAtOnce: 8,
  bulksAtOnce: 4,
  bulksPerCaller: 1,
  objectsEmptiedAtOnce: 4,
  objectsEmptiedWaiting: 100_000,
  // Incomplete removals of intervals, in total and per caller; the time after which the next one continues; how often an instance
  // looks for requests that other instances stored.
  removalsWaiting: 1_000,
  removalsWaitingPerCaller: 20,
  removalTurnMs: 1 * SECOND_MS,
  removalCheckMs: 5 * SECOND_MS,
  // How long clients can continue exactly after a packet that was removed on request.
  removedPlaceMs: DAY_MS,
  // How long a request looks for packets that a clock which was ahead has stamped.
  removalAheadMs: 2 * SECOND_MS,
  // The last steps of removals that exports look for.
  removalsMarked: 100,
  // Packets further apart belong to different segments of a track.
  trackGapMs: 15 * MINUTE_MS,
  // Tracks: points of the line, packets read for it, stops and trips returned, and the defaults that define a stop.
  trackPoints: 10_000,
  trackPointsUsual: 1_000,
  trackPackets: 5_000_000,
  trackStops: 10_000,
  stopTimeMs: 5 * MINUTE_MS,
  stopRadiusM: 100,
  stopRadiusMaxM: 100_000,
} as const;
