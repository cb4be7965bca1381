/** All caches of documents, invalidated by the change stream. */

import { type Accounts, createAccounts } from './accounts/accounts.js';
import type { Change } from './core/change.js';
import { createSourceFinder, type SourceFinder } from './devices/sources/source-store.js';
import { createStoreFinder, type StoreFinder } from './entities/custom-stores.js';
import { type AudienceCache, createAudienceCache } from './live/audience.js';
import { createModelFinder, type FailedFormula, type ModelFinder } from './packets/models.js';
import type { FairQueue } from './platform/fair-queue.js';
import type { Database } from './platform/mongo/driver/client.js';

export interface Caches {
  readonly accounts: Accounts;
  readonly stores: StoreFinder;
  readonly models: ModelFinder;
  /** As of what the change stream has delivered: for the live feed. */
  readonly audiences: AudienceCache;
  /** As they are now: for webhooks, which read the changes of a partition that they take over by themselves, and may be ahead. */
  readonly currentAudiences: AudienceCache;
  readonly sources: SourceFinder;
  /** Called after a write of this instance. */
  invalidate(written: Pick<Change, 'store' | 'id'>): void;
  /** Called for each change of the change stream. */
  apply(change: Change): void;
  /** Called when changes were missed. */
  invalidateAll(): void;
}

export interface CacheOptions {
  /** Whether the change stream delivers; while it does not, every look-up queries the database. */
  readonly isLive: () => boolean;
  /** Up to where the change stream has delivered every change; null while that is unknown. */
  readonly deliveredTo: () => string | null;
  readonly checkTurns: FairQueue;
  readonly onFailedFormula: (failed: FailedFormula) => void;
}

export function createCaches(database: Database, options: CacheOptions): Caches {
  const { isLive, deliveredTo, checkTurns, onFailedFormula } = options;
  const accounts = createAccounts(database, isLive);
  const stores = createStoreFinder(database, isLive, checkTurns);
  const models = createModelFinder(database, isLive, onFailedFormula);
  const audiences = createAudienceCache(database, deliveredTo);
  const currentAudiences = createAudienceCache(database, () => null);
  const sources = createSourceFinder(database, isLive);
  const invalidate = (written: Pick<Change, 'store' | 'id'>): void => {
    for (const cache of [accounts, stores, models, sources]) cache.invalidate(written);
  };
  return {
    accounts,
    stores,
    models,
    audiences,
    currentAudiences,
    sources,
    invalidate,
    apply(change) {
      // Most changes are packets, which no cache holds.
      if (change.store === 'packets') return;
      invalidate(change);
      audiences.apply(change);
      currentAudiences.apply(change);
    },
    invalidateAll() {
      for (const cache of [accounts, stores, models, sources, audiences, currentAudiences]) cache.invalidateAll();
    },
  };
}
