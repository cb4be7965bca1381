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
  readonly audiences: AudienceCache;
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
  readonly checkTurns: FairQueue;
  readonly onFailedFormula: (failed: FailedFormula) => void;
}

export function createCaches(database: Database, { isLive, checkTurns, onFailedFormula }: CacheOptions): Caches {
  const accounts = createAccounts(database, isLive);
  const stores = createStoreFinder(database, isLive, checkTurns);
  const models = createModelFinder(database, isLive, onFailedFormula);
  const audiences = createAudienceCache(database);
  const sources = createSourceFinder(database, isLive);
  const invalidate = (written: Pick<Change, 'store' | 'id'>): void => {
    for (const cache of [accounts, stores, models, sources]) cache.invalidate(written);
  };
  return {
    accounts,
    stores,
    models,
    audiences,
    sources,
    invalidate,
    apply(change) {
      // Most changes are packets, which no cache holds.
      if (change.store === 'packets') return;
      invalidate(change);
      audiences.apply(change);
    },
    invalidateAll() {
      for (const cache of [accounts, stores, models, sources, audiences]) cache.invalidateAll();
    },
  };
}
