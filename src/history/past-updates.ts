/** Reads changes of objects in an interval from the oplog, as far back as it reaches. */

import { MongoServerError } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { StreamChange } from '../platform/mongo/changes/decoder.js';
import {
  closeStream,
  dropStream,
  openStreamAt,
  readStream,
  type Stream,
  type StreamBatch,
} from '../platform/mongo/changes/stream.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { readCreatedMs } from '../platform/mongo/schema/migrations.js';

const HISTORY_LOST = 286;
const STORE = 'objects';

export interface PastUpdates {
  readonly changes: StreamChange[];
  /** The time up to which all changes were read, in ms; null when the interval is complete. */
  readonly readToMs: number | null;
}

/** Reads until there are `limit` changes, or until the time limit. `timeOf` returns the time of a change in ms. */
export async function readPastUpdates(
  database: Database,
  { fromMs, toMs, limit }: { fromMs: number; toMs: number; limit: number },
  isWanted: (change: StreamChange) => boolean,
  timeOf: (change: StreamChange) => number,
): Promise<PastUpdates> {
  const untilMs = clock.steadyMs() + LIMITS.pastUpdatesMs;
  const opened = await openWithin(database.client, await beginningOf(database, fromMs), toMs);
  const changes: StreamChange[] = [];
  if (opened === null) return { changes, readToMs: null };
  let { batch } = opened;
  try {
    for (;;) {
      changes.push(...batch.changes.filter((change) => change.store === STORE && isWanted(change)));
      const last = batch.changes.at(-1);
      if (last === undefined) return { changes, readToMs: null };
      // Changes may be in the oplog a little later than their own time.
      const readToMs = timeOf(last) - LIMITS.pastClockMs;
      if (readToMs > toMs) return { changes, readToMs: null };
      // A page never ends within one millisecond: the next page would repeat the changes of that millisecond.
      const isEnough = changes.length >= limit && readToMs > timeOf(changes[limit - 1] as StreamChange);
      const isLate = clock.steadyMs() > untilMs && readToMs > fromMs;
      if (isEnough || isLate) return { changes, readToMs };
      batch = await next(opened.stream);
    }
  } finally {
    await closeStream(opened.stream);
  }
}

const next = (stream: Stream): Promise<StreamBatch> =>
  readStream(stream, { waitMs: LIMITS.historyWaitMs, batchSize: LIMITS.pastUpdatesPage });

type Client = Database['client'];

/** From when on there may be changes: the oplog has those of all databases, and may be much older than this one. */
async function beginningOf(database: Database, fromMs: number): Promise<number> {
  const createdMs = await readCreatedMs(database);
  // A clock that was ahead when the database was created says nothing.
  return createdMs > clock.now() ? fromMs : Math.max(fromMs, createdMs - LIMITS.pastClockMs);
}

/** Opens the oplog at `fromMs`, or at its beginning, found by bisection; null when it begins after `toMs`. */
async function openWithin(client: Client, fromMs: number, toMs: number) {
  let lostMs = fromMs;
  let earliestMs = Math.min(toMs, clock.now());
  if (earliestMs < fromMs) return null;
  let opened = await tryOpenStream(client, Math.max(fromMs, 0));
  for (let tries = 0; opened === null && earliestMs - lostMs > LIMITS.pastStepMs && tries < LIMITS.pastTries; tries++) {
    const middleMs = Math.floor((lostMs + earliestMs) / 2);
    const found = await tryOpenStream(client, Math.max(middleMs, 0));
    if (found === null) lostMs = middleMs;
    else {
      earliestMs = middleMs;
      if (earliestMs - lostMs > LIMITS.pastStepMs && tries < LIMITS.pastTries - 1) await closeStream(found.stream);
      else opened = found;
    }
  }
  return opened ?? tryOpenStream(client, earliestMs);
}

async function tryOpenStream(client: Client, fromMs: number): Promise<{ stream: Stream; batch: StreamBatch } | null> {
  let stream: Stream | undefined;
  try {
    stream = await openStreamAt(client, STORE, fromMs);
    return { stream, batch: await next(stream) };
  } catch (error) {
    if (stream !== undefined) await dropStream(stream);
    if (error instanceof MongoServerError && error.code === HISTORY_LOST) return null;
    throw error;
  }
}
