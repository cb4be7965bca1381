/** What was found in the database and is asked for again and again; true while changes are heard. */
import type { Change } from '../model/change.js';
import { type Accounts, createAccounts } from './accounts.js';
import type { Database } from './connect.js';
import { createStoreFinder, type StoreFinder } from './custom-stores.js';
import { createModelFinder, type ModelFinder } from './models.js';
import { createReaders, type Readers } from './readers.js';

export interface Caches {
  readonly accounts: Accounts;
  readonly stores: StoreFinder;
  readonly models: ModelFinder;
  readonly readers: Readers;
  /** This instance wrote it: what was known of it is void at once. */
  forget(written: Pick<Change, 'store' | 'id'>): void;
  /** Somebody wrote it, as the database tells. */
  apply(change: Change): void;
  /** Changes were missed. */
  forgetAll(): void;
}

/** `isLive` tells whether changes arrive; while they do not, everything is asked of the database. */
export function createCaches(database: Database, isLive: () => boolean): Caches {
  const accounts = createAccounts(database, isLive);
  const stores = createStoreFinder(database, isLive);
  const models = createModelFinder(database, isLive);
  const readers = createReaders(database);
  const forget = (written: Pick<Change, 'store' | 'id'>): void => {
    for (const part of [accounts, stores, models]) part.forget(written);
  };
  return {
    ...{ accounts, stores, models, readers, forget },
    apply(change) {
      // Most changes; nothing is known of them.
      if (change.store === 'packets') return;
      forget(change);
      readers.apply(change);
    },
    forgetAll() {
      for (const part of [accounts, stores, models, readers]) part.forgetAll();
    },
  };
}
