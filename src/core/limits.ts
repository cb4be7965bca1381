/** Every limit of the service by name, with its unit. The tables of docs/reference/limits.md are tested against this file. */
import { ACCOUNT_LIMITS } from './account-limits.js';
import { GEOCODER_LIMITS } from './geocoder-limits.js';
import { LINK_LIMITS } from './link-limits.js';
import { NOTIFICATION_LIMITS } from './notification-limits.js';
import { PROCESSING_LIMITS } from './processing-limits.js';
import { RULE_LIMITS } from './rule-limits.js';
import { SHARED_LIMITS } from './shared-limits.js';
import { SOURCE_LIMITS } from './source-limits.js';
import { STORE_LIMITS } from './store-limits.js';
import { DAY_MS, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS } from './units.js';

export const LIMITS = {
  ...SHARED_LIMITS,
  ...STORE_LIMITS,
  ...ACCOUNT_LIMITS,
  ...LINK_LIMITS,
  ...GEOCODER_LIMITS,
  ...PROCESSING_LIMITS,
  ...RULE_LIMITS,
  ...NOTIFICATION_LIMITS,
  ...SOURCE_LIMITS,
  // Lists: at most 10000 entities in one response.
  listEntities: 10_000,
  listOffset: 10_000_000,
  listAnswerBytes: 64 * MIB,
  onlyNames: 50,
  whereFilters: 20,
  whereValues: 100,
  searchCharacters: 128,
  stateListObjects: 50_000,
  stateListBatch: 2_000,
  stateListMs: 10 * SECOND_MS,

  // Bodies and their content.
  entityBodyBytes: 1 * MIB,
  packetsBodyBytes: 16 * MIB,
  loginBodyBytes: 4 * KIB,
  entityStoredBytes: 1 * MIB,
  // Of the packet's JSON; small numbers of a list take up to six times that in the database.
  packetBytes: 64 * KIB,
  packetStoredBytes: 512 * KIB,
  packetsPerRequest: 10_000,
  // Packets that could not be stored, with the reasons.
  refusedPerObject: 100,
  refusedReasonCharacters: 500,
  reasonsPerPacket: 5,
  refusedInAudit: 10,
  refusedKeptMs: 30 * DAY_MS,
  refusedPending: 10_000,
  refusedDelayMs: 1 * SECOND_MS,
  jsonDepth: 20,
  jsonKeys: 500,
  jsonStringCharacters: 64 * KIB,
  jsonArrayItems: 10_000,
  jsonObjects: 10_000,
  keyCharacters: 128,
  headerBytes: 16 * KIB,

  // Time.
  packetAheadMs: 5 * MINUTE_MS,
  packetAheadMaxMs: 366 * DAY_MS,
  packAfterMaxMs: 3_653 * DAY_MS,
  // Wrong clocks are written at their objects when they begin and end, and in between at most this often.
  wrongClockCheckMs: SECOND_MS,
  wrongClockWrittenMs: MINUTE_MS,
  wrongClocksNoted: 10_000,
  tokenLifetimeMaxMs: 3_650 * DAY_MS,
  sessionLifetimeMaxMs: 366 * DAY_MS,

  // Names and accounts.
  nameCharacters: 256,
  idCharacters: 128,
  sharedUsers: 100,
  branchDepth: 32,

  // Login.
  tokenCharacters: 4 * KIB,
  tokenLastUsedDelayMs: MINUTE_MS,
  auditPending: 1_000,
  auditDelayMs: 500,
  auditPathCharacters: 256,
  auditFields: 100,
  auditValueCharacters: 200,
  auditValuesBytes: 4_096,
  auditRefusals: 100,
  auditChanges: 1_000,
  auditChangesAtOnce: 250,
  auditRefusalsMs: HOUR_MS,
  auditActors: 10_000,
  auditKeptMs: 90 * DAY_MS,
  // Damaged buckets of packed history that each instance names, and after which time it names them again.
  damagedInAudit: 100,
  damagedInAuditMs: HOUR_MS,
  loginFailureWindowMs: 15 * MINUTE_MS,
  loginFailuresEverywhere: 100,
  loginAddressKnownMs: 90 * DAY_MS,
  loginWaitMaxMs: DAY_MS,

  // Caches: entries; buffers of long pages that are kept for reuse.
  cachedAccounts: 10_000,
  cachedTokens: 10_000,
  cachedModels: 1_000,
  cachedAudiences: 100_000,
  cachedArrivals: 200_000,
  memoryStepBytes: 512 * KIB,
  spareBufferBytes: 8 * MIB,
  spareBuffers: 8,

  // Reads by key, inserts or changes of one turn of the event loop that share one command.
  itemsPerTurn: 100,
  // The maximum size of a write command, unless a single item is larger. MongoDB allows 16 MiB.
  writeBytes: 8 * MIB,

  // Packets of one write command; concurrent commands; a command of few requests does not delay the next one; waiting packets.
  packetsPerWrite: 1_000,
  packetWritesAtOnce: 4,
  smallWriteRequests: 2,
  packetsWaiting: 20_000,
  statePackets: 1_000,

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

  // Live: the ping interval and the time-out of its answer are part of the interface (docs/reference/live-events.md).
  pingIntervalMs: 25 * SECOND_MS,
  pingTimeoutMs: 60 * SECOND_MS,
  inboundFrameBytes: 16 * KIB,
  inboundPerSecond: 100,
  // Unsent bytes for a client that does not read, and for how long.
  waitingBytes: 32 * MIB,
  slowMs: 10 * SECOND_MS,
  slowCheckMs: 1 * SECOND_MS,
  socketsPerProcess: 10_000,
  socketsUnproven: 2_000,
  socketsUnprovenPerAddress: 200,
  socketAuthMs: 10 * SECOND_MS,
  subscribedObjects: 1_000,
  subscribedGroups: 20,
  // A page of events, and how long a request waits for one.
  pollEvents: 1_000,
  pollBytes: 8 * MIB,
  pollMs: MINUTE_MS,
  pollHistoryMs: 10 * SECOND_MS,
  // Connecting, by address.
  handshakesPerMinute: 3_000,
  // Under load, events are gathered for at most this long, and time without writing is credited up to this much.
  gatherMs: 30,
  gatherAheadMs: 10,
  // The time after which the feed yields to the event loop.
  turnMs: 5,
  // The replay buffer: recent changes stay in memory for clients that reconnect soon.
  recentChanges: 5_000,
  recentBytes: 8 * MIB,
  recentPage: 200,
  // Without subscribers for this long, the buffer is emptied.
  replayBufferIdleMs: MINUTE_MS,
  timerMs: DAY_MS,

  // Devices over MQTT.
  mqttConnectBytes: 8 * KIB,
  mqttPacketBytes: 64 * KIB,
  mqttSkippedBytes: 16 * MIB,
  mqttConnectMs: 5 * SECOND_MS,
  mqttProxyHeaderBytes: 1 * KIB,
  mqttRefusalDelayMs: 1 * SECOND_MS,
  mqttKeepAliveMaxS: 3_600,
  mqttDrainMs: 10 * SECOND_MS,
  mqttConnections: 20_000,
  mqttAcceptQueue: 8_192,
  mqttConnectsPerMinute: 15,
  mqttPacketsPerSecond: 1_000,
  mqttThrottleMs: 20,
  mqttStoringPerDevice: 100,
  mqttSubscriptions: 20,
  mqttFiltersPerPacket: 100,
  mqttTopicCharacters: 1_024,
  mqttUnreleasedMessages: 1_000,
  mqttUserProperties: 100,
  mqttTopicAliases: 20,
  mqttTopicAliasCharacters: 8 * KIB,
  mqttLeaveMs: 1 * SECOND_MS,
  mqttErrorReportPauseMs: MINUTE_MS,
  mqttResendMs: DAY_MS,
  mqttLastMessageBytes: 8 * KIB,
  mqttDevicesRemembered: 100_000,
  brokerConnections: 8,
  brokerReconnectMs: 1 * SECOND_MS,
  brokerDeviceMs: 5 * SECOND_MS,
  brokerLeaveMs: 2 * SECOND_MS,
  brokerCheckBatch: 1_000,
  commandConfirmMs: 20 * SECOND_MS,
  commandRetryMs: 1 * SECOND_MS,
  // Presence. An instance that was silent for `presenceSilentMs` counts as dead, and its devices as disconnected.
  presenceRenewMs: 1_000,
  presenceSilentMs: 3_500,
  presenceGraceMs: 2 * SECOND_MS,
  presenceBatch: 250,
  presenceRecheckMs: 5 * SECOND_MS,
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
  // Over HTTP, and over MQTT; the default of CONNECTIONS_PER_ADDRESS.
  connectionsPerAddress: 5_000,
  // After the end of a connection was sent, the time for the end of the other side. How often time limits of connections are checked.
  halfClosedMs: 5 * SECOND_MS,
  connectionCheckMs: 2 * SECOND_MS,
  // A server that was silent for the sum of the first two counts as unavailable; the third is the time to find another one.
  databaseConnectMs: 2 * SECOND_MS,
  databaseHeartbeatMs: 1 * SECOND_MS,
  databaseSelectionMs: 2.5 * SECOND_MS,
  databaseAnswerMs: 5 * SECOND_MS,
  databaseRetryMs: 100,
  databaseOperationMs: 15 * SECOND_MS,
  databaseConnections: 50,
  watcherWaitMs: 500,
  watcherPage: 1_000,
  // A silent change stream is reopened after this time, which doubles with each silent attempt up to the maximum.
  watcherAnswerMs: 3 * SECOND_MS,
  watcherAnswerMaxMs: MINUTE_MS,
  watcherHeartbeatMs: 500,
  watcherConnections: 4,
  watcherAttempts: 10,
  historyPage: 1_000,
  historyWaitMs: 20,
  historiesAtOnce: 2,
  backfillAheadMs: 5 * SECOND_MS,
  backfillWaitMs: 500,
  rightsDeliveryMs: 5 * SECOND_MS,
  watcherSilenceMs: 2 * SECOND_MS,
  watcherPauseMaxMs: 2 * SECOND_MS,
  groupMoveSettleMs: 30 * SECOND_MS,
  moveRecheckMs: HOUR_MS,
  leaseMs: 30 * SECOND_MS,
  // Retention: searching for old packets takes at most a hundredth of the time.
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
  acceptQueueDrainMs: 200,
  stopUnusedMs: SECOND_MS,
  stopQuietTurns: 10,
  // 2,000 sockets are disconnected within 2 s.
  disconnectGroupMin: 50,
  disconnectGroups: 40,
  disconnectPauseMs: 50,
  databaseRetryPauseMaxMs: 2 * SECOND_MS,

  // Overload: measured per window, and assumed after this number of windows in a row. Rate limits: the points that a request costs.
  overloadDelayMaxMs: MINUTE_MS,
  loadWindowMs: 500,
  loadWindows: 2,
  loadResolutionMs: 10,
  bigBodyBytes: 256 * KIB,
  rateWindowMs: 10 * SECOND_MS,
  pointBytes: 16 * KIB,
  pointMs: 1,

  // Probes.
  readyPingMs: 1 * SECOND_MS,
  probeConnections: 100,
} as const;
