/** Limits of shared resources, per caller and in total. A part of `LIMITS`. */
import { EXPORT_LIMITS } from './export-limits.js';
import { HISTORY_LIMITS } from './history-limits.js';
import { KIB, MIB, SECOND_MS } from './units.js';

export const SHARED_LIMITS = {
  ...EXPORT_LIMITS,
  ...HISTORY_LIMITS,

  // Concurrent lists. Quick lists are short pages in the order of an index; pages are longer; scans may read everything: counts,
  // filters, searches, other orders.
  quickEntities: 100,
  quickListsAtOnce: 16,
  quickListsPerCaller: 8,
  pagesAtOnce: 4,
  pagesPerCaller: 2,
  scansAtOnce: 3,
  scansPerCaller: 1,
  listsWaiting: 1_000,
  listsWaitingPerCaller: 100,
  listWaitMs: 10 * SECOND_MS,
  // Connections beside one for each concurrent list: for the commands that cancel lists.
  listConnectionsMore: 4,

  // Compression of answers, for clients that ask for it; more at once are sent as they are.
  compressedBytesMin: 1 * KIB,
  compressionsAtOnce: 2,

  // Bytes of answers that are not sent yet; small answers are not counted. A list waits while its caller has `answerBytesWait`
  // unsent. Beyond the total, each caller may have `answerReserveBytesPerCaller` of a reserve, so that others cannot block a first page.
  smallAnswerBytes: 64 * KIB,
  answerBytes: 160 * MIB,
  answerBytesPerCaller: 80 * MIB,
  answerBytesWait: 40 * MIB,
  answerReserveBytesPerCaller: 2 * MIB,
  answerReserveBytes: 32 * MIB,
  // An answer that sends less than `answerProgressBytes` in this time is aborted.
  answerStallMs: 30 * SECOND_MS,
  answerCheckMs: 5 * SECOND_MS,
  answerProgressBytes: 64 * KIB,
  // Pipelined requests of one connection that wait for an earlier answer; beyond, the service stops reading from it.
  requestsHeld: 16,

  // Subscriptions: concurrent look-ups of objects, waiting look-ups, and subscriptions of one socket.
  subscriptionsAtOnce: 4,
  subscriptionsPerCaller: 1,
  subscriptionsWaiting: 10_000,
  subscriptionsWaitingPerCaller: 200,
  subscriptionsPerSocket: 10,
  // After a subscription, its user's next one waits for this multiple of its duration.
  subscriptionPauseFactor: 1,
  // Checks of entities against schemas of added stores; after a check, the tenant's next one waits for a multiple of its time.
  // One check runs at a time; so many writes may hold a place for one.
  checksAtOnce: 1_000,
  checksWaitingPerTenant: 100,
  checksPerCaller: 1,
  checksWaiting: 10_000,
  checksWaitingPerCaller: 500,
  checkRests: 3,
  // Resuming clients: the age of a position from which the client reads its own history, how long it reads while others wait, and
  // the number of clients per user.
  historyNearMs: 300 * SECOND_MS,
  historyTurnMs: 2 * SECOND_MS,
  returningPerUser: 20,
  // Past events: how many objects are searched, in all and with one query, how many packets are read for a page of some events
  // only, how long the oplog is read, and in which steps.
  pastsAtOnce: 2,
  pastsPerCaller: 1,
  pastObjects: 200_000,
  pastObjectsAtOnce: 200,
  pastPackets: 100_000,
  pastBatch: 500,
  pastUpdatesMs: 3 * SECOND_MS,
  pastUpdatesPage: 100,
  pastClockMs: SECOND_MS,
  pastStepMs: 10 * SECOND_MS,
  pastTries: 20,
  timeMaxMs: 8.64e15,

  // Bodies of unanswered requests. From `checkedBodyBytes` on, their bytes are counted and their values are checked
  // while they arrive. Bodies above `bigBodyBytes` are parsed one after the other, lists in pieces.
  checkedBodyBytes: 64 * KIB,
  bodyPieceBytes: 256 * KIB,
  bodyContainers: 100_000,
  bodyValues: 1_000_000,
  bodyItemValues: 100_000,
  bodyBytes: 64 * MIB,
  bodyBytesPerCaller: 32 * MIB,
  bodyReserveBytesPerCaller: 2 * MIB,
  bodyReserveBytes: 16 * MIB,
  bigBodiesAtOnce: 2,
  hugeBodyBytes: 2 * MIB,
  hugeBodiesAtOnce: 1,
  bigBodiesPerCaller: 1,
  bigBodiesWaiting: 100,
  bigBodiesWaitingPerCaller: 20,
  bigBodyWaitMs: 10 * SECOND_MS,

  // Unread request bodies after the answer: read slowly, a chunk of this many connections at a time.
  leftoversAtOnce: 4,
  leftoverPauseMs: 10,

  // Packets that wait to be stored, per group of objects; their bytes, in total and per group. A request with more packets than
  // `slicedPackets` is checked in slices.
  packetsWaitingPerGroup: 15_000,
  packetsWaitingBytes: 32 * MIB,
  packetsWaitingBytesPerGroup: 24 * MIB,
  slicedPackets: 100,
  mqttStoringBytesPerDevice: 1 * MIB,

  // How far the clocks of instances may differ, and the smallest change of a clock that counts as a step.
  clockSkewMs: 60 * SECOND_MS,
  clockStepMs: 100,

  // How many objects' audiences are looked up with one query.
  readersBatch: 1_000,

  // Presence changes that could not be stored are retried: first after `presenceRenewMs`, then with growing pauses.
  presenceRetryMaxMs: 8 * SECOND_MS,
  // How many batches of connecting devices are stored at a time.
  presenceGroupsAtOnce: 2,
  presenceGatherMs: 20,
  // How many silent devices are read at a time when the service starts.
  silentReadBatch: 250,

  // The first pause before the change stream is resumed, or an unavailable database is asked again; then it grows.
  retryPauseMs: 100,

  // Collections that a move of a group reads at once.
  storesAtOnce: 20,

  // Idle callers that stay in memory.
  idleCallers: 1_000,

  // One answer with tiles of the operator's map.
  mapRangeBytes: 8 * MIB,
  // The map that an administrator chooses.
  mapUrlCharacters: 2_000,
  mapOrigins: 10,
  mapAttributionCharacters: 500,
  settingsBodyBytes: 64 * KIB,
} as const;
