/** Every number of the service, named, with its unit. The tables of docs/reference/limits.md are tested against this file. */
import { SHARED_LIMITS } from './shared-limits.js';
import { STORE_LIMITS } from './store-limits.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const KIB = 1_024;
const MIB = 1_024 * KIB;

export const LIMITS = {
  ...SHARED_LIMITS,
  ...STORE_LIMITS,

  // Lists. interface, "Limits": at most 10000 entities in one list response.
  listEntities: 10_000,
  listOffset: 10_000_000,
  listAnswerBytes: 64 * MIB,
  onlyNames: 50,
  whereFilters: 20,
  whereValues: 100,
  searchCharacters: 128,

  // Bodies and what is in them.
  entityBodyBytes: 1 * MIB,
  packetsBodyBytes: 16 * MIB,
  loginBodyBytes: 4 * KIB,
  entityStoredBytes: 1 * MIB,
  packetBytes: 64 * KIB,
  packetsPerRequest: 10_000,
  jsonDepth: 20,
  jsonKeys: 500,
  jsonStringCharacters: 64 * KIB,
  jsonArrayItems: 10_000,
  jsonObjects: 10_000,
  keyCharacters: 128,
  headerBytes: 16 * KIB,

  // Time.
  packetAheadMs: DAY_MS,
  tokenLifetimeMaxMs: 3_650 * DAY_MS,
  sessionLifetimeMaxMs: 366 * DAY_MS,

  // Names and accounts.
  nameCharacters: 256,
  idCharacters: 128,
  passwordCharactersMin: 8,
  passwordCharactersMax: 256,
  credentials: 100,
  tokenLineage: 32,
  sharedUsers: 100,
  branchDepth: 32,

  // Login.
  tokenCharacters: 4 * KIB,
  passwordHashesAtOnce: 2,
  passwordHashesWaiting: 100,
  loginFailuresPerAccount: 10,
  loginFailuresPerAddress: 100,
  sessionsPerUser: 50,
  tokenUseNotedMs: MINUTE_MS,
  auditPending: 1_000,
  auditDelayMs: 500,
  auditPathCharacters: 256,
  auditRefusals: 100,
  auditRefusalsMs: HOUR_MS,
  auditActors: 10_000,
  auditKeptMs: 90 * DAY_MS,
  loginFailureWindowMs: 15 * MINUTE_MS,
  loginFailuresEverywhere: 100,
  loginAddressKnownMs: 90 * DAY_MS,
  loginWaitMaxMs: DAY_MS,

  // Caches: entries; memory for long pages that is kept for the next ones.
  cachedAccounts: 10_000,
  cachedTokens: 10_000,
  cachedModels: 1_000,
  cachedReaders: 100_000,
  memoryStepBytes: 512 * KIB,
  memoryKeptBytes: 8 * MIB,
  memoriesKept: 8,

  // Reads by key, inserts or changes of one turn of the event loop that go to the database together.
  itemsPerTurn: 100,
  // What one command writes at most, unless a single item is larger; a command of MongoDB has 16 MiB.
  writeBytes: 8 * MIB,

  // Writes: packets that wait for the write under way and go into the next one together; one of few requests keeps none waiting.
  packetsPerWrite: 1_000,
  packetWritesAtOnce: 4,
  smallWriteRequests: 2,
  packetsWaiting: 20_000,
  statePackets: 100,

  // Commands.
  commandLifetimeMs: DAY_MS,
  commandLifetimeMinMs: SECOND_MS,
  commandLifetimeMaxMs: 90 * DAY_MS,
  commandsWaiting: 1_000,
  commandResultCharacters: 64 * KIB,
  commandWaitMs: MINUTE_MS,
  commandWaitersPerObject: 10,
  commandWaitersPerCaller: 1_000,
  commandWaiters: 10_000,
  expiryCheckMs: 2 * SECOND_MS,
  expiryBatch: 1_000,

  // Live. interface, "Limits": client ping interval 25 s, ping answer time-out 60 s.
  pingIntervalMs: 25 * SECOND_MS,
  pingTimeoutMs: 60 * SECOND_MS,
  inboundFrameBytes: 16 * KIB,
  inboundPerSecond: 100,
  // What waits for a client that does not read, and how long.
  waitingBytes: 32 * MIB,
  slowMs: 10 * SECOND_MS,
  slowCheckMs: 1 * SECOND_MS,
  socketsPerProcess: 10_000,
  socketsUnproven: 2_000,
  socketsUnprovenPerAddress: 200,
  socketProofMs: 10 * SECOND_MS,
  subscribedObjects: 1_000,
  // A page of events, and how long a request waits for one.
  pollEvents: 1_000,
  pollBytes: 8 * MIB,
  pollMs: MINUTE_MS,
  pollHistoryMs: 10 * SECOND_MS,
  // Connecting, by address.
  handshakesPerMinute: 3_000,
  // Under load events are gathered this long at most; writing them makes up for so much time in which none was written.
  gatherMs: 30,
  gatherAheadMs: 10,
  // No work of the feed keeps the process longer from other work.
  turnMs: 5,
  // What came in the last moments stays in memory for those who come back soon.
  recentChanges: 5_000,
  recentBytes: 8 * MIB,
  recentPage: 200,
  // While nobody was there for so long, nothing does.
  recentUnheardMs: MINUTE_MS,
  timerMs: DAY_MS,

  // Devices over MQTT.
  mqttConnectBytes: 8 * KIB,
  mqttPacketBytes: 64 * KIB,
  mqttConnectMs: 5 * SECOND_MS,
  mqttProxyHeaderBytes: 1 * KIB,
  mqttRefusalDelayMs: 1 * SECOND_MS,
  mqttKeepAliveMaxS: 3_600,
  mqttDrainMs: 10 * SECOND_MS,
  mqttConnections: 20_000,
  mqttConnectionsPerAddress: 5_000,
  mqttConnectsPerMinute: 15,
  mqttPacketsPerSecond: 1_000,
  mqttThrottleMs: 20,
  mqttStoringPerDevice: 100,
  mqttSubscriptions: 20,
  mqttFaultToldMs: MINUTE_MS,
  mqttResendMs: DAY_MS,
  mqttLastMessageBytes: 8 * KIB,
  mqttDevicesRemembered: 100_000,
  brokerConnections: 8,
  brokerReconnectMs: 1 * SECOND_MS,
  brokerDeviceMs: 5 * SECOND_MS,
  brokerLeaveMs: 2 * SECOND_MS,
  commandConfirmMs: 20 * SECOND_MS,
  commandRetryMs: 1 * SECOND_MS,
  // Who is there. An instance that gave no sign of life for `presenceSilentMs` is gone, and its devices with it.
  presenceRenewMs: 1_000,
  presenceSilentMs: 3_500,
  presenceGraceMs: 2 * SECOND_MS,
  presenceBatch: 250,
  presenceAgainMs: 5 * SECOND_MS,
  offlineAfterMinMs: 1 * SECOND_MS,
  offlineAfterMaxMs: 366 * DAY_MS,

  // The log.
  logWriteBytes: 12 * KIB,
  logDelayMs: 100,

  // HTTP server and database.
  headersTimeoutMs: 10 * SECOND_MS,
  requestTimeoutMs: 60 * SECOND_MS,
  keepAliveTimeoutMs: 65 * SECOND_MS,
  connections: 20_000,
  // A server that has not spoken for the sum of the first two is away; the third is how long another one is looked for.
  databaseConnectMs: 2 * SECOND_MS,
  databaseHeartbeatMs: 1 * SECOND_MS,
  databaseSelectionMs: 2.5 * SECOND_MS,
  databaseAnswerMs: 5 * SECOND_MS,
  databaseRetryMs: 100,
  databaseOperationMs: 15 * SECOND_MS,
  databaseConnections: 50,
  watcherWaitMs: 500,
  watcherPage: 1_000,
  // A stream that says nothing for so long is opened anew; each time it goes on saying nothing it gets twice the time.
  watcherAnswerMs: 3 * SECOND_MS,
  watcherAnswerMaxMs: MINUTE_MS,
  watcherHeartbeatMs: 500,
  watcherConnections: 4,
  watcherAttempts: 10,
  historyPage: 1_000,
  historyWaitMs: 20,
  historiesAtOnce: 2,
  historyAheadMs: 5 * SECOND_MS,
  historyPatienceMs: 500,
  watcherSilenceMs: 2 * SECOND_MS,
  watcherPauseMaxMs: 2 * SECOND_MS,
  moveSettleMs: 30 * SECOND_MS,
  moveRecheckMs: HOUR_MS,
  leaseMs: 30 * SECOND_MS,

  // Old packets: looking for them takes at most a hundredth of the time.
  retentionDays: 36_500,
  sweepPauseMs: MINUTE_MS,
  sweepPauseRatio: 100,
  sweepBatch: 1_000,
  packetsPerRemoval: 1_000,
  orphanGraceMs: HOUR_MS,
  orphansNoted: 10_000,

  // Backups.
  backupCompression: 1,
  backupPieceBytes: 1 * MIB,
  restoreBatch: 1_000,
  stopDelayMaxMs: MINUTE_MS,
  stopMs: 10 * SECOND_MS,
  stopPollMs: 50,
  stopLetInMs: 200,
  stopQuietTurns: 10,
  // 2,000 sockets are let go within 2 s.
  letGoAtOnce: 50,
  letGoPieces: 40,
  letGoPauseMs: 50,
  awayPauseMaxMs: 2 * SECOND_MS,

  // Load: how busy the process is is looked at in each window, and believed of so many in a row; what a request costs, in points.
  overloadDelayMaxMs: MINUTE_MS,
  loadWindowMs: 500,
  loadWindows: 2,
  loadResolutionMs: 10,
  bigBodyBytes: 256 * KIB,
  rateWindowMs: 10 * SECOND_MS,
  pointBytes: 16 * KIB,
  pointMs: 1,

  // Those who watch over the service.
  readyPingMs: 1 * SECOND_MS,
  probeConnections: 100,
} as const;
