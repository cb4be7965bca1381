/** A change stream as commands of its own: opened after a position, read batch by batch, and what it says as Changes. */
import {
  BSON,
  BSONType,
  type ClientSession,
  type Db,
  type Document,
  type Long,
  type MongoClient,
  Timestamp,
} from 'mongodb';
import { STORES } from '../model/stores.js';
import { cursorIn, documentAt, findField, findValue, readBatch } from './bson.js';
import { runRawCommand } from './raw-command.js';
import { KINDS, type StreamChange, toChange } from './stream-changes.js';

/** An open change stream; a cursor belongs to the session that opened it. */
export interface Stream {
  readonly db: Db;
  readonly id: Long;
  readonly session: ClientSession;
}

/**
 * The log of security events is read, not followed. One list for every stream: where a change is filtered out, the database
 * cannot find the place after it.
 */
const WATCHED = [...STORES.keys(), 'packets', 'sessions', 'presence'].filter((name) => name !== 'audit');

/** Opens a stream of what happened after `token`, or from now on; with where it begins. */
export function openStream(client: MongoClient, token: Document | null): Promise<{ stream: Stream; token: Document }> {
  return open(client, token === null ? {} : { resumeAfter: token }, WATCHED, token);
}

/** The same of one store, from a time on. */
export async function openStreamAt(client: MongoClient, store: string, fromMs: number): Promise<Stream> {
  const startAtOperationTime = new Timestamp({ t: Math.floor(fromMs / 1_000), i: 0 });
  return (await open(client, { startAtOperationTime }, [store], null)).stream;
}

async function open(
  client: MongoClient,
  start: Document,
  stores: readonly string[],
  token: Document | null,
): Promise<{ stream: Stream; token: Document }> {
  const images = { fullDocument: 'whenAvailable', fullDocumentBeforeChange: 'whenAvailable' };
  const match = {
    'ns.coll': { $in: stores },
    operationType: { $in: Object.keys(KINDS) },
    // The packets of an object that was removed are many, and their end is nobody's news.
    $nor: [{ 'ns.coll': 'packets', operationType: 'delete' }],
  };
  const pipeline = [
    { $changeStream: { ...images, ...start } },
    { $match: match },
    // Only so does the stream get past a change that is, with its images, larger than an answer of the database may be.
    { $changeStreamSplitLargeEvent: {} },
  ];
  const command = { aggregate: 1, pipeline, cursor: { batchSize: 0 }, readConcern: { level: 'majority' } };
  const session = client.startSession();
  const db = client.db();
  try {
    const { cursor } = await db.command(command, { session, promoteLongs: false });
    return { stream: { db, id: cursor.id as Long, session }, token: token ?? cursor.postBatchResumeToken };
  } catch (error) {
    await session.endSession();
    throw error;
  }
}

export interface StreamBatch {
  readonly changes: StreamChange[];
  /** How far the stream has looked. */
  readonly token: Document;
  /** How many changes were too large to be told: they came in pieces, and are left out. */
  readonly skipped: number;
  /** When the last of the changes was written, by the database's clock; null where there was none. */
  readonly writtenMs: number | null;
  /** Whether the stream ends here. */
  readonly ended: boolean;
}

/** What came next, waiting at most `waitMs` for it. */
export async function readStream(
  { db, id, session }: Stream,
  { waitMs, batchSize }: { waitMs: number; batchSize: number },
): Promise<StreamBatch> {
  const command = { getMore: id, collection: '$cmd.aggregate', maxTimeMS: waitMs, batchSize };
  const cursor = cursorIn(await runRawCommand(db, command, session));
  const batch = readBatch(cursor);
  const { memory } = batch;
  const events = [...batch.starts()];
  const pieces = events.filter((event) => isPiece(memory, event)).map((event) => pieceOf(memory, event));
  const whole = pieces.length === 0 ? events : events.filter((event) => !isPiece(memory, event));
  return {
    changes: whole.map((event) => toChange(memory, event)),
    token: BSON.deserialize(findField(cursor, 'postBatchResumeToken', BSONType.object) ?? missing('token')),
    skipped: pieces.filter(({ fragment, of }) => fragment === of).length,
    writtenMs: writtenMsOf(memory, whole.at(-1)),
    ended: batch.cursorId === 0n,
  };
}

// Whether it is a piece of a change too large to be told at once, and which one.
const isPiece = (memory: Buffer, event: number): boolean =>
  findValue(memory, event, 'splitEvent', BSONType.object) >= 0;
const pieceOf = (memory: Buffer, event: number): Document =>
  BSON.deserialize(findField(documentAt(memory, event), 'splitEvent', BSONType.object) ?? missing('piece'));

function writtenMsOf(memory: Buffer, event: number | undefined): number | null {
  const written = event === undefined ? -1 : findValue(memory, event, 'wallTime', BSONType.date);
  return written === -1 ? null : Number(memory.readBigInt64LE(written));
}

const missing = (what: string): never => {
  throw new TypeError(`the change stream told no ${what}`);
};

/** Lets go of a stream that broke: its cursor is not asked for, whoever has it may be gone. */
export async function dropStream({ session }: Stream): Promise<void> {
  await session.endSession().catch(() => undefined);
}

/** Lets go of a stream that works. */
export async function closeStream({ db, id, session }: Stream): Promise<void> {
  const kill = { killCursors: '$cmd.aggregate', cursors: [id] };
  await db.command(kill, { session }).catch(() => undefined);
  await session.endSession().catch(() => undefined);
}
