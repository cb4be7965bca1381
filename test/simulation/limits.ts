/**
 * Small limits. What happens only where a cache, a page, a queue or a transaction is full happens in runs that have little of everything,
 * and objects that share few partitions meet in them.
 */
import fc from 'fast-check';
import { LIMITS } from '../../src/core/limits.js';

const SMALL = {
  cachedAccounts: [1, 2],
  cachedAudiences: [1, 2],
  cachedObjectFacts: [1, 2],
  cachedTokens: [1, 2],
  commitTasks: [1, 3],
  commitTenantSteps: [1],
  expiryBatch: [1, 2],
  historyPage: [1, 3],
  itemsPerTurn: [1, 2],
  packetsPerWrite: [1, 3],
  packetWritesAtOnce: [1, 2],
  partitions: [1, 2, 4],
  partitionTasks: [1, 3],
  presenceBatch: [1, 2],
  readersBatch: [1, 2],
  recentChanges: [1, 10],
  recentPage: [1, 3],
  silentReadBatch: [1, 2],
  watcherPage: [1, 3],
  webhookBatch: [1, 3],
  webhookRequests: [2, 4],
  webhookRequestsPerPartition: [1, 2],
  webhookWindow: [1, 2],
} as const satisfies Partial<Record<keyof typeof LIMITS, readonly number[]>>;

export type SmallLimits = Partial<Record<keyof typeof LIMITS, number>>;

/** Some of them; in one run of three none. */
export const smallLimits: fc.Arbitrary<SmallLimits> = fc.oneof(
  { weight: 1, arbitrary: fc.constant({}) },
  {
    weight: 2,
    arbitrary: fc.record(
      Object.fromEntries(Object.entries(SMALL).map(([name, values]) => [name, fc.constantFrom(...values)])),
      { requiredKeys: [] },
    ),
  },
);

/** Sets them for all instances; returns what restores the usual ones. */
export function replaceLimits(small: SmallLimits): () => void {
  const usual = Object.fromEntries(Object.keys(small).map((name) => [name, LIMITS[name as keyof typeof LIMITS]]));
  Object.assign(LIMITS, small);
  return () => void Object.assign(LIMITS, usual);
}
