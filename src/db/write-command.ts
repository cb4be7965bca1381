/**
 * Commands that write, as the driver would send them for one write: done once however often they are tried. The driver's own
 * ways for groups of writes cost twice as much of the process' time.
 */
import { setTimeout } from 'node:timers/promises';
import {
  BSON,
  type ClientSession,
  type Db,
  type Document,
  Long,
  MongoNotConnectedError,
  MongoServerSelectionError,
} from 'mongodb';
import { LIMITS } from '../model/limits.js';
import { isAway } from './documents.js';
import { runRawCommand } from './raw-command.js';

/** What is durable when the database says so: a majority has it in its journal. */
const WRITE_CONCERN = { w: 'majority', j: true };
const HOPELESS = [MongoServerSelectionError, MongoNotConnectedError];

/**
 * Gives the reply when what was done is durable. A reply that is lost, or a primary that steps down, is followed by another
 * try with the same number, which the database does not do again but answers as it would have the first time
 * (MongoDB specifications, "Retryable Writes"). Throws what the database says of the command as a whole, and the last
 * fault when its time is over; what it says of single writes is in the reply.
 */
export async function runWrite(db: Db, command: Document): Promise<Document> {
  const session = db.client.startSession({ causalConsistency: false });
  try {
    session.serverSession.txnNumber += 1;
    const txnNumber = Long.fromNumber(session.serverSession.txnNumber);
    const numbered = Object.assign({}, command, { writeConcern: WRITE_CONCERN, txnNumber });
    return BSON.deserialize(await tryAgain(session, () => runRawCommand(db, numbered, session)));
  } finally {
    await session.endSession();
  }
}

async function tryAgain<T>(session: ClientSession, operation: () => Promise<T>): Promise<T> {
  const lastMs = performance.now() + LIMITS.databaseAnswerMs - LIMITS.databaseRetryMs;
  for (;;) {
    try {
      return await operation();
    } catch (error) {
      // No server was found in the time there is for that, or the client was closed.
      const isHopeless = HOPELESS.some((kind) => error instanceof kind) || session.hasEnded;
      if (isHopeless || !isAway(error) || performance.now() > lastMs) throw error;
      await setTimeout(LIMITS.databaseRetryMs);
    }
  }
}

/** What is written, and how large that is. */
export interface Sized {
  readonly bytes: number;
}

/** Cut where one command would have more than it takes; whatever is in one piece goes together. */
export function inPieces<T extends Sized>(items: readonly T[]): T[][] {
  const pieces: T[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const item of items) {
    bytes += item.bytes;
    if (bytes > LIMITS.writeBytes) {
      pieces.push([]);
      bytes = item.bytes;
    }
    pieces.at(-1)?.push(item);
  }
  return pieces;
}

/** A document that was not inserted, by its place among those given, and what the database says of it. */
export interface Refusal {
  readonly index: number;
  readonly code: number;
  readonly errmsg: string;
}

export interface NewDocument extends Sized {
  readonly document: Document;
}

/** Inserts each that can be; durable when it resolves. Throws what concerns them all: then any of them may be there. */
export async function insertMany(db: Db, collection: string, items: readonly NewDocument[]): Promise<Refusal[]> {
  const refusals: Refusal[] = [];
  let before = 0;
  for (const piece of inPieces(items)) {
    const documents = piece.map(({ document }) => document);
    const { writeErrors = [] } = await runWrite(db, { insert: collection, documents, ordered: false });
    for (const one of writeErrors as Refusal[]) refusals.push({ ...one, index: before + one.index });
    before += piece.length;
  }
  return refusals;
}
