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
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb';
import { LIMITS } from '../model/limits.js';
import { isAway } from './documents.js';
import { runRawCommand, sequenceOf } from './raw-command.js';

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

/** Something to write as BSON: its bytes are made before it goes with others, so that what has none fails alone. */
export interface Write {
  readonly bson: Uint8Array;
}

/** What became of a write: what the database says of it, or why it was refused. */
export type Outcome<Result> = { readonly result: Result } | { readonly refused: unknown };

/**
 * Runs writes together, and gives what became of each, in their order. As many go together as one command takes. Where a
 * group is refused for a reason that is not the database's, it is divided until what is at fault is alone with it: the
 * others are written. Throws when the database is away: then any of them may have been done.
 */
export async function writeTogether<Item extends Write, Result>(
  items: readonly Item[],
  run: (group: readonly Item[]) => Promise<Outcome<Result>[]>,
): Promise<Outcome<Result>[]> {
  const outcomes: Outcome<Result>[] = [];
  for (const piece of inPieces(items)) outcomes.push(...(await writeApart(piece, run)));
  return outcomes;
}

async function writeApart<Item extends Write, Result>(
  group: readonly Item[],
  run: (group: readonly Item[]) => Promise<Outcome<Result>[]>,
): Promise<Outcome<Result>[]> {
  try {
    return await run(group);
  } catch (error) {
    if (isAway(error)) throw error;
    if (group.length === 1) return [{ refused: error }];
    const half = group.length >> 1;
    return [...(await writeApart(group.slice(0, half), run)), ...(await writeApart(group.slice(half), run))];
  }
}

/** Cut where one command would have more than it takes; whatever is in one piece goes together. */
function inPieces<Item extends Write>(items: readonly Item[]): Item[][] {
  const pieces: Item[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const item of items) {
    bytes += item.bson.length;
    if (bytes > LIMITS.writeBytes) {
      pieces.push([]);
      bytes = item.bson.length;
    }
    pieces.at(-1)?.push(item);
  }
  return pieces;
}

const INSERTED = { result: null };

/** Inserts each that can be; durable when it resolves. Throws when the database is away. */
export function insertTogether(db: Db, collection: string, items: readonly Write[]): Promise<Outcome<null>[]> {
  return writeTogether(items, async (group) => {
    const documents = sequenceOf(
      'documents',
      group.map(({ bson }) => bson),
    );
    const { writeErrors = [] } = await runWrite(db, { insert: collection, documents, ordered: false });
    const outcomes: Outcome<null>[] = group.map(() => INSERTED);
    for (const error of writeErrors) outcomes[error.index] = { refused: new MongoServerError(error) };
    return outcomes;
  });
}
