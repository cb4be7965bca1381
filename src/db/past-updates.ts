/** Changes of objects in an interval, out of the database's log, as far back as that reaches. */
import { MongoServerError } from 'mongodb';
import { LIMITS } from '../model/limits.js';
import type { Database } from './connect.js';
import { closeStream, dropStream, openStreamAt, readStream, type Stream, type StreamBatch } from './stream.js';
import type { StreamChange } from './stream-changes.js';

const HISTORY_LOST = 286;

export interface PastUpdates {
  readonly changes: StreamChange[];
  /** Up to when all was read, ms; null for up to now. */
  readonly readToMs: number | null;
}

/** The changes from then on, until there are so many, or the time for it is over. `timeOf`: when one happened, ms. */
export async function readPastUpdates(
  { client }: Database,
  { fromMs, toMs, limit }: { fromMs: number; toMs: number; limit: number },
  isWanted: (change: StreamChange) => boolean,
  timeOf: (change: StreamChange) => number,
): Promise<PastUpdates> {
  const untilMs = performance.now() + LIMITS.pastUpdatesMs;
  const begun = await openWithin(client, fromMs, toMs);
  const changes: StreamChange[] = [];
  if (begun === null) return { changes, readToMs: null };
  let { batch } = begun;
  try {
    for (;;) {
      changes.push(...batch.changes.filter(isWanted));
      const last = batch.changes.at(-1);
      if (last === undefined || timeOf(last) > toMs) return { changes, readToMs: null };
      if (changes.length >= limit || performance.now() > untilMs) return { changes, readToMs: timeOf(last) };
      batch = await next(begun.stream);
    }
  } finally {
    await closeStream(begun.stream);
  }
}

const next = (stream: Stream): Promise<StreamBatch> =>
  readStream(stream, { waitMs: LIMITS.historyWaitMs, batchSize: LIMITS.historyPage });

type Client = Database['client'];

/** The log from then on, or from where it begins, found by halves; null where it begins later than `toMs`. */
async function openWithin(client: Client, fromMs: number, toMs: number) {
  let [lostMs, earliestMs] = [fromMs, Math.min(toMs, Date.now())];
  if (earliestMs < fromMs) return null;
  let begun = await tryOpen(client, Math.max(fromMs, 0));
  for (let tries = 0; begun === null && earliestMs - lostMs > LIMITS.pastStepMs && tries < LIMITS.pastTries; tries++) {
    const middleMs = Math.floor((lostMs + earliestMs) / 2);
    const found = await tryOpen(client, Math.max(middleMs, 0));
    if (found === null) lostMs = middleMs;
    else {
      earliestMs = middleMs;
      if (earliestMs - lostMs > LIMITS.pastStepMs && tries < LIMITS.pastTries - 1) await closeStream(found.stream);
      else begun = found;
    }
  }
  return begun ?? tryOpen(client, earliestMs);
}

async function tryOpen(client: Client, fromMs: number): Promise<{ stream: Stream; batch: StreamBatch } | null> {
  let stream: Stream | undefined;
  try {
    stream = await openStreamAt(client, 'objects', fromMs);
    return { stream, batch: await next(stream) };
  } catch (error) {
    if (stream !== undefined) await dropStream(stream);
    if (error instanceof MongoServerError && error.code === HISTORY_LOST) return null;
    throw error;
  }
}
