/** What one caller may have of what all share, and what all may have of it together: a part of `LIMITS`. */

const SECOND_MS = 1_000;
const KIB = 1_024;
const MIB = 1_024 * KIB;

export const SHARED_LIMITS = {
  // Lists at once. Quick ones are short pages in the order of an index; pages are longer; scans are whatever else may have to
  // look at everything: counts, filters, searches, other orders.
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
  // Connections beside one for each list at once: for what ends them.
  listConnectionsMore: 4,

  // Answers that have not left yet; small ones are not counted. A list waits while its caller has as much as `answerBytesWait`.
  // Beyond the bound for all, each caller may have a little, so that nobody is kept from the first page by others.
  smallAnswerBytes: 64 * KIB,
  answerBytes: 160 * MIB,
  answerBytesPerCaller: 80 * MIB,
  answerBytesWait: 40 * MIB,
  answerLittleBytes: 2 * MIB,
  answerReserveBytes: 32 * MIB,
  // An answer of which less than `answerProgressBytes` leaves in this time is cut.
  answerStallMs: 30 * SECOND_MS,
  answerCheckMs: 5 * SECOND_MS,
  answerProgressBytes: 64 * KIB,
  // Requests of one connection that wait for the answer to another; beyond, it is not read from.
  requestsHeld: 16,

  // Subscriptions: objects that are looked for at once, and what waits for that; of one socket.
  subscriptionsAtOnce: 4,
  subscriptionsPerCaller: 1,
  subscriptionsWaiting: 10_000,
  subscriptionsWaitingPerCaller: 200,
  subscriptionsPerSocket: 10,
  // After a subscription its user's next one waits for so many times as long as that took.
  subscriptionRests: 1,
  // Entities of added stores that are checked against their schemas, and how many times as long their caller's next one waits.
  checksAtOnce: 16,
  checksPerCaller: 1,
  checksWaiting: 10_000,
  checksWaitingPerCaller: 500,
  checkRests: 3,
  // Clients that come back: from when on they are served by themselves, for how long while others wait, and how many of one user.
  historyNearMs: 300 * SECOND_MS,
  historyTurnMs: 2 * SECOND_MS,
  returningPerUser: 20,
  // Events of the past: how many objects are looked through, and how long the database's log is read.
  pastObjects: 200_000,
  pastUpdatesMs: 3 * SECOND_MS,
  pastStepMs: 10 * SECOND_MS,
  pastTries: 20,
  pastFarMs: 8.64e15,

  // Bodies of requests that are not answered yet. From `checkedBodyBytes` on they are counted, and checked while they arrive for how
  // many values they hold; larger ones than `bigBodyBytes` are dealt with in turn, a list in pieces.
  checkedBodyBytes: 64 * KIB,
  bodyPieceBytes: 256 * KIB,
  bodyContainers: 100_000,
  bodyValues: 1_000_000,
  bodyItemValues: 100_000,
  bodyBytes: 64 * MIB,
  bodyBytesPerCaller: 32 * MIB,
  bodyLittleBytes: 2 * MIB,
  bodyReserveBytes: 16 * MIB,
  bigBodiesAtOnce: 2,
  bigBodiesPerCaller: 1,
  bigBodiesWaiting: 100,
  bigBodiesWaitingPerCaller: 20,
  bigBodyWaitMs: 10 * SECOND_MS,

  // What is still sent after the answer is read so slowly: a piece of so many connections at a time.
  leftoversAtOnce: 4,
  leftoverPauseMs: 10,

  // Packets that wait to be stored, of the objects of one group; and their bytes, in all and of one group. More packets of one
  // request than `slicedPackets` are checked in slices.
  packetsWaitingPerGroup: 15_000,
  packetsWaitingBytes: 32 * MIB,
  packetsWaitingBytesPerGroup: 24 * MIB,
  slicedPackets: 100,
  mqttStoringBytesPerDevice: 1 * MIB,

  // How far the clocks of instances may be apart; and from where on a change of the clock is a step.
  clockSkewMs: 60 * SECOND_MS,
  clockStepMs: 100,

  // How many objects' readers are looked for in one question.
  readersBatch: 1_000,

  // What could not be stored of whether devices are there is tried again: at first after `presenceRenewMs`, then ever later.
  presenceRetryMaxMs: 8 * SECOND_MS,
  // How many groups of devices that connect are stored at a time.
  presenceGroupsAtOnce: 2,
  presenceGatherMs: 20,
  // How many silent devices are read at a time when the service starts, beside everything else.
  silentReadBatch: 250,

  // Collections that a move of a group looks into at once.
  storesAtOnce: 20,

  // Callers of whom nothing is under way and who are remembered all the same.
  idleCallers: 1_000,
} as const;
