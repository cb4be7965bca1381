/** Limits of the geocoder. A part of `LIMITS`. */
import { DAY_MS, KIB, MINUTE_MS, SECOND_MS } from './units.js';

export const GEOCODER_LIMITS = {
  geocoderTextCharacters: 256,
  geocoderPlaces: 5,
  geocoderAnswerMs: 5 * SECOND_MS,
  geocoderAnswerBytes: 256 * KIB,
  geocoderRequests: 8,
  geocoderRequestsPerCaller: 3,
  geocoderPerCaller: 60,
  geocoderPerCallerMs: MINUTE_MS,
  geocoderCached: 10_000,
  geocoderCachedMs: DAY_MS,
  // A proxy before a geocoder that restarts answers 404, too.
  geocoderNotFoundCachedMs: 5 * MINUTE_MS,
  geocoderAddressCharacters: 300,
  geocoderFailureLogMs: MINUTE_MS,
} as const;
