/** Queues lists fairly per caller, and cancels a list that no caller waits for. */

import { LIMITS } from '../../../core/limits.js';
import type { ListCost } from '../../../core/list.js';
import { clock } from '../../clock.js';
import type { Database } from './client.js';
import type { ListRequest } from './list-caller.js';

/** The database for the lists of one caller. */
export const withListRequest = (
  { client, db, admin, batch, clock, onDamaged }: Database,
  listing: ListRequest,
): Database => ({
  client,
  db,
  admin,
  batch,
  clock,
  listing,
  onDamaged,
});

/** Runs one read for callers of the same list, in the queue of the first one; cancels it when all of them have left. */
export async function runList<T>(
  callers: readonly Database[],
  cost: ListCost,
  read: (database: Database) => Promise<T>,
): Promise<T> {
  const [first] = callers as [Database];
  const { listing } = first;
  // A read of the service itself.
  if (listing === undefined) return read(first);
  // A quick list ends sooner than it could be cancelled.
  const stop = cost === 'quick' ? null : abortWithAll(callers);
  const work = async (): Promise<T> => {
    const startMs = clock.steadyMs();
    try {
      return await read(stop === null ? first : { ...first, stop });
    } finally {
      listing.caller.consumeForMs(clock.steadyMs() - startMs);
    }
  };
  return listing.queues[cost].run(listing.caller, work, stop);
}

/** Runs a history read in the caller's queue. Each batch is queued and charged separately. */
export function readHistory<T>(database: Database, read: (database: Database) => Promise<T>): Promise<T> {
  const { listing } = database;
  if (listing === undefined) return read(database);
  const stop = listing.caller.disconnectSignal();
  return listing.queues.history.run(listing.caller, () => read({ ...database, stop }), stop);
}

function abortWithAll(callers: readonly Database[]): AbortSignal | null {
  const signals = callers.flatMap(({ listing }) => listing?.caller.disconnectSignal() ?? []);
  if (signals.length <= 1) return signals[0] ?? null;
  const all = new AbortController();
  const abortIfAll = (): void => {
    if (signals.every(({ aborted }) => aborted)) all.abort(signals[0]?.reason);
  };
  for (const signal of signals) signal.addEventListener('abort', abortIfAll, { once: true });
  abortIfAll();
  return all.signal;
}

/** Counts the bytes of a page from writing until `release`. */
export interface HeldBytes {
  /** Sets the number of bytes. Throws 429 or 503 beyond the budget. */
  growTo(bytes: number): void;
  release(): void;
}

/** Counts bytes against the caller's budget; small pages are not counted. */
export function holdBytes({ listing }: Database): HeldBytes {
  let held = 0;
  return {
    growTo(bytes) {
      if (listing === undefined || bytes <= LIMITS.smallAnswerBytes || bytes <= held) return;
      const refusal = listing.budget.take(listing.caller.userId, bytes - held);
      if (refusal !== null) throw refusal;
      held = bytes;
    },
    release() {
      if (held > 0) listing?.budget.release(listing.caller.userId, held);
      held = 0;
    },
  };
}
