/**
 * Bounds work of many commands: each of them has a bound of its own, but their number may grow with the history. Work that is over is
 * ended, not only left alone: the command under way is killed in the database, and no other begins.
 */
import { unavailable } from '../../../core/errors.js';
import { clock } from '../../clock.js';
import type { Database } from './client.js';

/** Runs work with a database that ends it after `withinMs`. Throws 503 then. */
export function endWithin<T>(database: Database, withinMs: number, work: (reader: Database) => Promise<T>): Promise<T> {
  const deadline = new Deadline(database, withinMs);
  return deadline.run(() => work(deadline.reader));
}

/** The same for work that gives its results one by one. The time that the caller takes for them does not count. */
export async function* endAllWithin<T>(
  database: Database,
  withinMs: number,
  work: (reader: Database) => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const deadline = new Deadline(database, withinMs);
  const source = work(deadline.reader);
  let hasFailed = false;
  try {
    for (;;) {
      const { value, done } = await deadline.run(() => source.next());
      if (done) return;
      yield value;
    }
  } catch (error) {
    hasFailed = true;
    throw error;
  } finally {
    const closing = source.return(undefined);
    // Waiting for an unavailable database would delay the error.
    if (hasFailed) closing.catch(() => undefined);
    else await closing;
  }
}

class Deadline {
  readonly reader: Database;
  readonly #over = new AbortController();
  #leftMs: number;

  constructor(database: Database, withinMs: number) {
    const { signal } = this.#over;
    const { stop } = database;
    this.reader = { ...database, stop: stop === undefined ? signal : AbortSignal.any([stop, signal]) };
    this.#leftMs = withinMs;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    const { signal } = this.#over;
    const startMs = clock.steadyMs();
    const timer = clock.setTimeout(() => this.#over.abort(tooLong()), this.#leftMs);
    let end: () => void = () => undefined;
    const ended = new Promise<never>((_, reject) => {
      end = () => reject(signal.reason);
    });
    signal.addEventListener('abort', end);
    try {
      return await Promise.race([work(), ended]);
    } finally {
      signal.removeEventListener('abort', end);
      clock.clearTimer(timer);
      this.#leftMs -= clock.steadyMs() - startMs;
    }
  }
}

const tooLong = () =>
  unavailable(
    'the database did not answer in time: there was too much to read',
    new Error('many commands took too long together'),
  );
