/**
 * Retryable writes for groups of writes: applied once, however often they are tried. The driver's own bulk writes cost twice as
 * much of the process' time.
 */

import {
  BSON,
  type ClientSession,
  type Db,
  type Document,
  Long,
  MongoNotConnectedError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb';
import { LIMITS } from '../../../core/limits.js';
import { clock } from '../../clock.js';
import { isTransientError } from './errors.js';
import { runRawCommand, sequenceOf } from './raw-command.js';

/** Durable when acknowledged: a majority has the write in its journal. */
const WRITE_CONCERN = { w: 'majority', j: true };
const NOT_RETRYABLE = [MongoServerSelectionError, MongoNotConnectedError];

/**
 * Returns the reply when the write is durable. After a lost reply or a step-down of the primary it retries with the same
 * transaction number: the database does not apply the write again, but repeats its first answer (MongoDB specifications,
 * "Retryable Writes"). Throws errors of the command as a whole, and the last transient error after the time limit. Errors of
 * single writes are in the reply.
 */
export async function runWrite(db: Db, command: Document): Promise<Document> {
  const session = db.client.startSession({ causalConsistency: false });
  try {
    session.serverSession.txnNumber += 1;
    const txnNumber = Long.fromNumber(session.serverSession.txnNumber);
    const numbered = Object.assign({}, command, { writeConcern: WRITE_CONCERN, txnNumber });
    return BSON.deserialize(await retry(session, () => runRawCommand(db, numbered, session)));
  } finally {
    await session.endSession();
  }
}

async function retry<T>(session: ClientSession, operation: () => Promise<T>): Promise<T> {
  const lastMs = clock.steadyMs() + LIMITS.databaseAnswerMs - LIMITS.databaseRetryMs;
  for (;;) {
    try {
      return await operation();
    } catch (error) {
      // Server selection has timed out, or the client is closed.
      const isFinal = NOT_RETRYABLE.some((kind) => error instanceof kind) || session.hasEnded;
      if (isFinal || !isTransientError(error) || clock.steadyMs() > lastMs) throw error;
      await clock.wait(LIMITS.databaseRetryMs);
    }
  }
}

/** A write as BSON. It is serialized before it joins a group, so that an unserializable document fails alone. */
export interface Write {
  readonly bson: Uint8Array;
}

/** The result of one write, or its error. */
export type WriteOutcome<Result> = { readonly result: Result } | { readonly error: unknown };

/**
 * Runs writes in groups as large as one command allows, and returns their outcomes in order. A group that fails with a permanent
 * error is halved until the faulty write is alone, so that all others are written. Throws on a transient error: any of the
 * writes may then have been applied.
 */
export async function writeTogether<Item extends Write, Result>(
  items: readonly Item[],
  run: (group: readonly Item[]) => Promise<WriteOutcome<Result>[]>,
): Promise<WriteOutcome<Result>[]> {
  const outcomes: WriteOutcome<Result>[] = [];
  for (const chunk of chunkBySize(items)) outcomes.push(...(await writeSplit(chunk, run)));
  return outcomes;
}

async function writeSplit<Item extends Write, Result>(
  group: readonly Item[],
  run: (group: readonly Item[]) => Promise<WriteOutcome<Result>[]>,
): Promise<WriteOutcome<Result>[]> {
  try {
    return await run(group);
  } catch (error) {
    if (isTransientError(error)) throw error;
    if (group.length === 1) return [{ error }];
    const half = group.length >> 1;
    return [...(await writeSplit(group.slice(0, half), run)), ...(await writeSplit(group.slice(half), run))];
  }
}

/** Splits the items into chunks of at most `writeBytes`, unless a single item is larger. */
function chunkBySize<Item extends Write>(items: readonly Item[]): Item[][] {
  const chunks: Item[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const item of items) {
    bytes += item.bson.length;
    if (bytes > LIMITS.writeBytes) {
      chunks.push([]);
      bytes = item.bson.length;
    }
    chunks.at(-1)?.push(item);
  }
  return chunks;
}

const INSERTED = { result: null };

/** Inserts all valid documents; they are durable when the promise resolves. Throws on a transient error. */
export function insertTogether(db: Db, collection: string, items: readonly Write[]): Promise<WriteOutcome<null>[]> {
  return writeTogether(items, async (group) => {
    const documents = sequenceOf(
      'documents',
      group.map(({ bson }) => bson),
    );
    const { writeErrors = [] } = await runWrite(db, { insert: collection, documents, ordered: false });
    const outcomes: WriteOutcome<null>[] = group.map(() => INSERTED);
    for (const error of writeErrors) outcomes[error.index] = { error: new MongoServerError(error) };
    return outcomes;
  });
}
