/** What happened to objects after a position: the database's own log, read again for those who were away. */
import { type MongoClient, MongoServerError } from 'mongodb';
import type { HistoryPage, OpenHistory } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import { isAway } from './documents.js';
import { closeStream, dropStream, openStream, readStream, type Stream } from './stream.js';
import { toPosition, toToken } from './stream-changes.js';

export function createHistory(client: MongoClient): OpenHistory {
  return async (position) => {
    const stream = await openAfter(client, position);
    if (stream === null) return null;
    // Whether the database has what the position asks for shows when it is read.
    const first = await readPage(stream).catch(async (error: unknown) => {
      await dropStream(stream);
      return whyNot(error);
    });
    return first === null ? null : pages(stream, first);
  };
}

async function openAfter(client: MongoClient, position: string): Promise<Stream | null> {
  const opened = await openStream(client, toToken(position)).catch(whyNot);
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
  let broke = false;
  const next = () =>
    readPage(stream).catch((error: unknown) => {
      broke = true;
      throw error;
    });
  try {
    yield first;
    for (;;) yield await next();
  } finally {
    await (broke ? dropStream(stream) : closeStream(stream));
  }
}

// What else the database says to a position is that it knows no such place.
function whyNot(error: unknown): null {
  if (!(error instanceof MongoServerError) || isAway(error)) throw error;
  return null;
}
