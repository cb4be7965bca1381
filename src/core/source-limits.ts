/** Limits of sources. A part of `LIMITS`. */
import { DAY_MS, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS } from './units.js';

export const SOURCE_LIMITS = {
  // What a source maps, and the text of one path.
  sourceMapFields: 200,
  sourcePathCharacters: 256,
  // What the map makes of one request: characters of values and names, and of the paths that are looked up.
  sourceMappedBytes: 16 * MIB,
  cachedSources: 1_000,
  // Commands for devices behind a source: the address and the key; how long one instance has the commands of an object; requests at once, in
  // total and per source; the time to the next try, which doubles up to the maximum.
  sourceUrlCharacters: 1_024,
  downlinkLeaseMs: MINUTE_MS,
  downlinkNotedMs: MINUTE_MS,
  downlinksAtOnce: 50,
  downlinksPerSource: 4,
  downlinksWaiting: 1_000,
  downlinksWaitingPerSource: 100,
  downlinkRetryMs: 5 * SECOND_MS,
  downlinkRetryMaxMs: 10 * MINUTE_MS,
  downlinkCheckMs: SECOND_MS,
  downlinkBatch: 1_000,
  // Commands that go out with one answer of a source.
  sourceCommandsPerAnswer: 20,
  // Events of a network that wait at a command which is being passed on, until it is known whether they are about it.
  downlinkReceiptsKept: 20,
  // Objects that one source creates within an hour, and unknown devices of one source that the audit names within an hour.
  sourceRegistrations: 1_000,
  sourceRegistrationsMs: HOUR_MS,
  sourceUnknownDevices: 100,
  sourceUnknownMs: HOUR_MS,
  // Payloads that could not be stored, with the beginning of each.
  refusedPerSource: 100,
  refusedPayloadBytes: 4 * KIB,
  refusedPayloadsPending: 1_000,
  refusedPayloadsKeptMs: 30 * DAY_MS,
  refusedPayloadsDelayMs: SECOND_MS,
} as const;
