/** Limits of notifications. A part of `LIMITS`. */
import { KIB, MINUTE_MS, SECOND_MS } from './units.js';

export const NOTIFICATION_LIMITS = {
  channelsPerUser: 10,
  channelUrlCharacters: 512,
  chatCharacters: 64,
  accountBodyBytes: 16 * KIB,
  // Tests of channels by one user, and the period in which they are counted.
  channelTests: 20,
  channelTestsMs: 10 * MINUTE_MS,
  mailConnections: 4,
  mailConnectMs: 10 * SECOND_MS,
  mailAnswerMs: 15 * SECOND_MS,
  // Of a text as a channel shows it.
  notificationTitleCharacters: 200,
  notificationTextCharacters: 3_000,
} as const;
