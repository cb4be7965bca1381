/** Lists are read in turn, so that one caller's do not starve the others; and no longer than somebody waits for them. */
import { LIMITS } from '../model/limits.js';
import type { ListCost } from '../model/list.js';
import type { Listing } from './asker.js';
import type { Database } from './connect.js';

/** The database as one asker reads lists from it. */
export const askedBy = ({ client, db, admin, inTurn }: Database, listing: Listing): Database => ({
  ...{ client, db, admin, inTurn, listing },
});

/** Reads what several ask for alike in its turn; ends it in the database when all of them have gone. */
export async function readInTurn<T>(
  askers: readonly Database[],
  cost: ListCost,
  read: (database: Database) => Promise<T>,
): Promise<T> {
  const [first] = askers as [Database];
  const { listing } = first;
  // The service itself asks.
  if (listing === undefined) return read(first);
  // What is quick is over sooner than it could be ended.
  const stop = cost === 'quick' ? null : whenAllGone(askers);
  const work = async (): Promise<T> => {
    const startMs = performance.now();
    try {
      return await read(stop === null ? first : { ...first, stop });
    } finally {
      listing.asker.spent(performance.now() - startMs);
    }
  };
  return listing.queues[cost].run(listing.asker.caller, work, stop);
}

function whenAllGone(askers: readonly Database[]): AbortSignal | null {
  const signals = askers.flatMap(({ listing }) => listing?.asker.gone() ?? []);
  if (signals.length <= 1) return signals[0] ?? null;
  const all = new AbortController();
  const look = (): void => {
    if (signals.every(({ aborted }) => aborted)) all.abort(signals[0]?.reason);
  };
  for (const signal of signals) signal.addEventListener('abort', look, { once: true });
  look();
  return all.signal;
}

/** The bytes of a page from the time that they are written until `release`. */
export interface HeldBytes {
  /** There are so many now. Throws 429, 503. */
  growTo(bytes: number): void;
  release(): void;
}

/** Bytes that the asker has; those of a small page are not counted. */
export function holdBytes({ listing }: Database): HeldBytes {
  let held = 0;
  return {
    growTo(bytes) {
      if (listing === undefined || bytes <= LIMITS.smallAnswerBytes || bytes <= held) return;
      const refusal = listing.budget.take(listing.asker.caller, bytes - held);
      if (refusal !== null) throw refusal;
      held = bytes;
    },
    release() {
      if (held > 0) listing?.budget.giveBack(listing.asker.caller, held);
      held = 0;
    },
  };
}
