/** Limits of notifications. A part of `LIMITS`. */
import { DAY_MS, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS } from './units.js';

export const NOTIFICATION_LIMITS = {
  channelsPerUser: 10,
  channelUrlCharacters: 512,
  pushEndpointCharacters: 1_024,
  // How long a push service keeps a message for a browser that it cannot reach.
  pushLifetimeMs: DAY_MS,
  // Browsers take at most 4,096 bytes with what encrypts them.
  pushBytes: 3_900,
  chatCharacters: 64,
  accountBodyBytes: 16 * KIB,
  // Tests of channels by one user, and the period in which they are counted.
  channelTests: 20,
  channelTestsMs: 10 * MINUTE_MS,
  // Codes that confirm an address: how long one is valid, and how many are sent in a period.
  channelCodeMs: HOUR_MS,
  channelCodeAttempts: 5,
  channelCodesPerUser: 15,
  channelCodesPerAddress: 5,
  channelCodesMs: DAY_MS,
  mailConnections: 4,
  mailConnectMs: 10 * SECOND_MS,
  mailAnswerMs: 15 * SECOND_MS,
  // Of a text as a channel shows it.
  notificationTitleCharacters: 200,
  notificationTextCharacters: 3_000,

  // Whom a rule notifies: named users, and all who belong to a group.
  notifiedUsersNamed: 100,
  notifiedUsers: 1_000,
  notificationTemplateCharacters: 1_000,
  notificationValueCharacters: 200,
  remindMinMs: SECOND_MS,
  escalationSteps: 10,

  // A gateway that is offline: how long an alarm of its objects waits at first, how often it is looked at, and how long its objects have
  // to come back after it.
  gatewayWaitMs: 2 * SECOND_MS,
  gatewayCheckMs: 10 * SECOND_MS,
  gatewayGraceMs: MINUTE_MS,
  // How many gateways in a row are followed to find a circle.
  gatewaysInRow: 16,

  // The sender: how often it looks for what is due, and how many rows it reads at a time and works on at once.
  notificationCheckMs: SECOND_MS,
  noticesAtOnce: 100,
  notificationLanes: 1_000,
  notificationLanesAtOnce: 64,
  notificationLanesAtOncePerUser: 4,
  notificationLanesAtOncePerTenant: 16,
  notificationLanesOfTenant: 100,
  notificationBatch: 100,
  notificationAttempts: 12,
  notificationRetryMs: 5 * SECOND_MS,
  notificationRetryMaxMs: HOUR_MS,
  // How long a receiver that fails is left alone when further messages come, at most.
  notificationProbeMs: MINUTE_MS,
  notificationKeptMs: 30 * DAY_MS,
  reminderKeptMs: DAY_MS,
  notificationsShown: 100,

  // Reports by mail: schedules of a tenant, mails of one run, the file of a mail and the rows in its text, and runs on request by one user.
  schedulesPerTenant: 100,
  scheduleRecipients: 100,
  // Reports to one mail address, of all schedules, within this time.
  scheduleMailsPerAddress: 100,
  scheduleMailsPerAddressMs: DAY_MS,
  scheduleFileBytes: 4 * MIB,
  scheduleRowsShown: 20,
  scheduleRunsAsked: 20,
  scheduleRunsAskedMs: HOUR_MS,
  // How often what is due is looked for, from when on a mail says that it is late, how often a run is tried while the database fails and how
  // long it rests in between, and how long a mail is kept until it is sent.
  scheduleCheckMs: 2 * SECOND_MS,
  scheduleLateMs: 15 * MINUTE_MS,
  scheduleAttempts: 10,
  scheduleRetryMs: MINUTE_MS,
  scheduleMailKeptMs: 2 * DAY_MS,

  // Messages to one person in this time; what comes then is held back, and reported as one.
  stormMessages: 20,
  stormMs: 5 * MINUTE_MS,
  stormGatherMs: 10 * SECOND_MS,
} as const;
