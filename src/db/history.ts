/** What happened to objects after a position: the database's own log, read again for those who were away. */
import { type MongoClient, MongoNetworkError, MongoServerError, MongoServerSelectionError } from 'mongodb';
import type { HistoryPage, OpenHistory } from '../model/change.js';
import { LIMITS } from '../model/limits.js';
import { closeStream, openStream, readStream, type Stream, toChange, toPosition, toToken } from './stream.js';

const COLLECTIONS = ['objects', 'packets'];

export function createHistory(client: MongoClient): OpenHistory {
  return async (position) => {
    const stream = await openAfter(client, position);
    if (stream === null) return null;
    // Whether the database has what the position asks for shows when it is read.
    const first = await readPage(stream).catch(async (error: unknown) => {
      await closeStream(stream);
      return whyNot(error);
    });
    return first === null ? null : pages(stream, first);
  };
}

async function openAfter(client: MongoClient, position: string): Promise<Stream | null> {
  const opened = await openStream(client, COLLECTIONS, toToken(position)).catch(whyNot);
  return opened?.stream ?? null;
}

async function readPage(stream: Stream): Promise<HistoryPage> {
  const { documents, token, ended } = await readStream(stream, {
    waitMs: LIMITS.historyWaitMs,
    batchSize: LIMITS.historyPage,
  });
  if (ended) throw new Error('the database closed the change stream');
  return { changes: documents.map(toChange), upTo: toPosition(token) };
}

async function* pages(stream: Stream, first: HistoryPage): AsyncGenerator<HistoryPage, never> {
  try {
    yield first;
    for (;;) yield await readPage(stream);
  } finally {
    await closeStream(stream);
  }
}

function whyNot(error: unknown): null {
  if (isPassing(error)) throw error;
  return null;
}

// Anything else that the database says to a position is that it knows no such place.
function isPassing(error: unknown): boolean {
  if (error instanceof MongoNetworkError || error instanceof MongoServerSelectionError) return true;
  return !(error instanceof MongoServerError) || error.hasErrorLabel('RetryableWriteError') || PASSING.has(error.code);
}

const PASSING: ReadonlySet<unknown> = new Set([50, 91, 189, 10_107, 11_600, 11_602, 13_435, 13_436]);
