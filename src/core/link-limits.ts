/** Limits of share links. A part of `LIMITS`. */
import { DAY_MS, MINUTE_MS } from './units.js';

export const LINK_LIMITS = {
  linksPerObject: 100,
  linksPerUser: 500,
  linkFields: 100,
  linkLifetimeMinMs: MINUTE_MS,
  linkLifetimeMaxMs: 366 * DAY_MS,
  linkHistoryMs: DAY_MS,
  linkPackets: 1_000,
  // An open page asks for its link again after this time.
  linkViewMs: DAY_MS,
  linkBodyBytes: 16_384,
} as const;
