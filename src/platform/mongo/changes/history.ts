/** Reads the changes after a position from the oplog, for clients that resume. */
import { type MongoClient, MongoServerError } from 'mongodb';
import type { HistoryPage, OpenHistory } from '../../../core/change.js';
import { LIMITS } from '../../../core/limits.js';
import { isTransientError } from '../driver/errors.js';
import { toPosition, toToken } from './decoder.js';
import { closeStream, dropStream, openStream, readStream, type Stream } from './stream.js';

export function createHistory(client: MongoClient): OpenHistory {
  return async (position) => {
    const stream = await openAfter(client, position);
    if (stream === null) return null;
    // Only the first read shows whether the database has the history after the position.
    const first = await readPage(stream).catch(async (error: unknown) => {
      await dropStream(stream);
      return nullIfUnknown(error);
    });
    return first === null ? null : pages(stream, first);
  };
}

async function openAfter(client: MongoClient, position: string): Promise<Stream | null> {
  const opened = await openStream(client, toToken(position)).catch(nullIfUnknown);
  return opened?.stream ?? null;
}

async function readPage(stream: Stream): Promise<HistoryPage> {
  const { changes, token, ended } = await readStream(stream, {
    waitMs: LIMITS.historyWaitMs,
    batchSize: LIMITS.historyPage,
  });
  if (ended) throw new Error('the database closed the change stream');
  return { changes, upTo: toPosition(token) };
}

async function* pages(stream: Stream, first: HistoryPage): AsyncGenerator<HistoryPage, never> {
  let isBroken = false;
  const next = () =>
    readPage(stream).catch((error: unknown) => {
      isBroken = true;
      throw error;
    });
  try {
    yield first;
    for (;;) yield await next();
  } finally {
    await (isBroken ? dropStream(stream) : closeStream(stream));
  }
}

// Any permanent error of the server means that it does not know the position.
function nullIfUnknown(error: unknown): null {
  if (!(error instanceof MongoServerError) || isTransientError(error)) throw error;
  return null;
}
