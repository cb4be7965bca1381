/** Limits of processing changes and of webhooks. A part of `LIMITS`. */
import { DAY_MS, HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS } from './units.js';

export const PROCESSING_LIMITS = {
  // Partitions: a dead instance loses its partitions after `partitionLeaseMs`; all look for free ones every `partitionTickMs`.
  partitions: 16,
  partitionLeaseMs: 5 * SECOND_MS,
  partitionTickMs: SECOND_MS,
  // How much earlier an instance considers its lease expired than the database does.
  partitionMarginMs: SECOND_MS,
  // Tasks that wait to be committed, and their bytes, per partition and in total; beyond, a partition falls behind, and reading the
  // history pauses. The tasks and bytes of one transaction.
  partitionTasks: 2_000,
  partitionTaskBytes: 8 * MIB,
  taskBytes: 64 * MIB,
  tenantTaskBytesUnderLoad: 64 * KIB,
  commitTasks: 250,
  commitBytes: 4 * MIB,
  // Steps that the tasks of a tenant may take for one transaction, about 20 ns each: others wait so long. One task may take more.
  commitTenantSteps: 1_000_000,

  // A refill out of packets: how long before the lost position a packet may have been received, and how old its own time may be.
  refillMarginMs: MINUTE_MS,
  refillLateMs: 7 * DAY_MS,
  pastObjectsBatch: 100,

  // Webhooks.
  webhooks: 1_000,
  webhooksPerTenant: 100,
  webhookUrlCharacters: 2 * KIB,
  webhookObjects: 1_000,
  webhookLabels: 100,
  webhookHeaders: 20,
  webhookHeaderCharacters: 4 * KIB,
  webhookAnswerMs: 15 * SECOND_MS,
  webhookIdleMs: 10 * SECOND_MS,
  webhookAnswerBytes: 64 * KIB,
  webhookAnswerShownBytes: KIB,
  webhookRequestsPerPartition: 4,
  webhookRequests: 1_000,
  webhookSendsPerTurn: 8,
  webhookRequestsUnderLoad: 8,
  webhookWindow: 64,
  webhookBatch: 100,
  webhookBatchBytes: MIB,
  webhookBufferBytes: 32 * MIB,
  /** Of one queue, while more than half of the buffer is in use. */
  webhookBufferUnderLoadBytes: 8 * KIB,
  webhookRetryAfterMaxMs: HOUR_MS,
  /** 72 h. */
  webhookLifetimeMs: 3 * DAY_MS,
  webhookDeadKeptMs: 30 * DAY_MS,
  /** As long as there may be messages about it: 30 days as dead ones, and 3 days after they were sent again. */
  removedObjectKeptMs: 33 * DAY_MS,
  webhookDeliveredKeptMs: HOUR_MS,
  webhookBreakerFailures: 5,
  webhookProbeMs: 30 * SECOND_MS,
  webhookProbeMaxMs: 10 * MINUTE_MS,
  webhookResumedMs: SECOND_MS,
  webhookQueueRows: 100_000,
  webhookQueueBytes: 256 * MIB,
  webhookQueueCheckMs: 5 * SECOND_MS,
  webhookQueueReportPauseMs: HOUR_MS,
  webhookDeadRows: 100_000,
  webhookSweepMs: MINUTE_MS,
  webhookCountedRows: 1_000_000,
  webhookSweepBatch: 1_000,
  webhookSecretOverlapMs: DAY_MS,
  webhookStopMs: 2 * SECOND_MS,
  webhookAckDelayMs: 5,
  webhookResolveMs: 2 * SECOND_MS,
  // How long a name server may take to answer the first time, and how often it is asked; the time doubles. How much longer than
  // addresses of one family those of the other may take.
  webhookNameTryMs: 2 * SECOND_MS,
  webhookNameTries: 2,
  webhookOtherFamilyMs: 50,
  webhookReplays: 100,
  webhookReplaysPerTenant: 25,
  webhookReplaysPerCaller: 10,
  webhookReplayAhead: 1_000,
  webhookReplayTurnMs: SECOND_MS,
  webhookReplayCheckMs: SECOND_MS,
  webhookTestsAtOnce: 20,
  webhookTestsPerCaller: 2,
  webhookTestsWaiting: 100,
  webhookTestsWaitingPerCaller: 20,
  cachedObjectFacts: 100_000,
} as const;
