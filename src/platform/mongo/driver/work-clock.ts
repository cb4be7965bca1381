/** Bounds the time that the database and the process work on one request. */

import type { ApiError } from '../../../core/errors.js';
import { clock } from '../../clock.js';
import type { Database } from './client.js';
import type { ListCaller } from './list-caller.js';

export interface WorkClock {
  /** The same database; its lists add to the time. */
  readonly database: Database;
  /** Runs work whose duration counts. Throws once the limit is exceeded. */
  count<T>(work: () => Promise<T>): Promise<T>;
}

/** Waiting in a queue does not count. */
export function createWorkClock(database: Database, limitMs: number, refusal: () => ApiError): WorkClock {
  let spentMs = 0;
  const { listing } = database;
  const counted: Database =
    listing === undefined
      ? database
      : { ...database, listing: { ...listing, caller: toCountingCaller(listing.caller) } };
  function toCountingCaller(caller: ListCaller): ListCaller {
    const consumeForMs = (ms: number): void => {
      spentMs += ms;
      caller.consumeForMs(ms);
    };
    return { userId: caller.userId, disconnectSignal: caller.disconnectSignal, consumeForMs };
  }
  return {
    database: counted,
    async count(work) {
      if (spentMs > limitMs) throw refusal();
      const startMs = clock.steadyMs();
      try {
        return await work();
      } finally {
        spentMs += clock.steadyMs() - startMs;
      }
    },
  };
}
