/** A change stream through raw commands: opened after a position and read in batches of Changes. */
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
import { STORES } from '../../../core/stores.js';
import { MIB } from '../../../core/units.js';
import { cursorIn, readBatch } from '../bson/document-batch.js';
import { documentAt, findField, findValue } from '../bson/reader.js';
import { runRawCommand } from '../driver/raw-command.js';
import { isUnpacked, KINDS, type StreamChange, toChange } from './decoder.js';

/** An open change stream; a cursor belongs to the session that opened it. */
export interface Stream {
  readonly db: Db;
  readonly id: Long;
  readonly session: ClientSession;
}

/**
 * Excludes security events, which have no consumers. All streams use the same list: the database cannot resume after a change
 * that the filter excludes.
 */
const WATCHED = [...STORES.keys(), 'packets', 'sessions', 'presence', 'settings'].filter((name) => name !== 'audit');

/** Opens a stream after `token`, or from now on. Returns the token of its start. */
export function openStream(client: MongoClient, token: Document | null): Promise<{ stream: Stream; token: Document }> {
  return open(client, token === null ? {} : { resumeAfter: token }, WATCHED, token);
}

/** Instances renew their records here every second. */
const RENEWALS = 'processors';

/**
 * Opens a stream of one store from a time on. It also has the renewals of instances: the database answers when it has found enough
 * changes, and might otherwise read a long oplog without an answer.
 */
export async function openStreamAt(client: MongoClient, store: string, fromMs: number): Promise<Stream> {
  const startAtOperationTime = new Timestamp({ t: Math.floor(fromMs / 1_000), i: 0 });
  return (await open(client, { startAtOperationTime }, [store, RENEWALS], null)).stream;
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
    // Removing an object removes many packets, which no consumer needs to know.
    $nor: [{ 'ns.coll': 'packets', operationType: 'delete' }],
  };
  const pipeline = [
    { $changeStream: { ...images, ...start } },
    { $match: match },
    // Without this stage, a change whose images exceed the size limit of a reply would block the stream.
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
  /** The resume token after this batch. */
  readonly token: Document;
  /** The number of changes that were too large for one reply: they arrive as fragments and are skipped. */
  readonly skipped: number;
  /** When the last change was written, by the database's clock; null for an empty batch. */
  readonly writtenMs: number | null;
  /** Whether the database closed the stream. */
  readonly ended: boolean;
  /** Whether the reply was full: more may have been stored when it was asked for. */
  readonly isFull: boolean;
}

/** A reply is full where the next change does not fit into it. Hardly a change is larger than half of it. */
const FULL_REPLY_BYTES = 8 * MIB;

/** Reads the next batch, waiting at most `waitMs` for changes. */
export async function readStream(
  { db, id, session }: Stream,
  { waitMs, batchSize }: { waitMs: number; batchSize: number },
): Promise<StreamBatch> {
  const command = { getMore: id, collection: '$cmd.aggregate', maxTimeMS: waitMs, batchSize };
  const cursor = cursorIn(await runRawCommand(db, command, session));
  const batch = readBatch(cursor);
  const { memory } = batch;
  const events = batch.starts();
  const fragments = events.filter((event) => isFragment(memory, event)).map((event) => fragmentOf(memory, event));
  const whole = fragments.length === 0 ? events : events.filter((event) => !isFragment(memory, event));
  return {
    changes: whole.filter((event) => !isUnpacked(memory, event)).map((event) => toChange(memory, event)),
    token: BSON.deserialize(findField(cursor, 'postBatchResumeToken', BSONType.object) ?? missing('token')),
    skipped: fragments.filter(({ fragment, of }) => fragment === of).length,
    writtenMs: writtenMsOf(memory, whole.at(-1)),
    ended: batch.cursorId === 0n,
    isFull: events.length >= batchSize || memory.length >= FULL_REPLY_BYTES,
  };
}

const isFragment = (memory: Buffer, event: number): boolean =>
  findValue(memory, event, 'splitEvent', BSONType.object) >= 0;
const fragmentOf = (memory: Buffer, event: number): Document =>
  BSON.deserialize(findField(documentAt(memory, event), 'splitEvent', BSONType.object) ?? missing('splitEvent'));

function writtenMsOf(memory: Buffer, event: number | undefined): number | null {
  const written = event === undefined ? -1 : findValue(memory, event, 'wallTime', BSONType.date);
  return written === -1 ? null : Number(memory.readBigInt64LE(written));
}

const missing = (name: string): never => {
  throw new TypeError(`the change stream has no ${name}`);
};

/** Drops a broken stream without killing its cursor, whose server may be gone. */
export async function dropStream({ session }: Stream): Promise<void> {
  await session.endSession().catch(() => undefined);
}

/** Closes a working stream. */
export async function closeStream(stream: Stream): Promise<void> {
  await killCursor(stream);
  await dropStream(stream);
}

/** Ends the cursor of a stream; a read under way fails at once. */
export async function killCursor({ db, id, session }: Stream): Promise<void> {
  const kill = { killCursors: '$cmd.aggregate', cursors: [id] };
  await db.command(kill, { session }).catch(() => undefined);
}
