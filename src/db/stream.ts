/** A change stream as commands of its own: opened after a position, read batch by batch, and what it says as Changes. */
import type { ClientSession, Document, Long, MongoClient } from 'mongodb';
import type { Change } from '../model/change.js';
import type { JsonObject } from '../model/json.js';
import { STORES } from '../model/stores.js';
import { toEntity, toPlain } from './documents.js';

/** An open change stream; a cursor belongs to the session that opened it. */
export interface Stream {
  readonly client: MongoClient;
  readonly id: Long;
  readonly session: ClientSession;
}

const KINDS: Readonly<Record<string, Change['kind']>> = {
  insert: 'created',
  update: 'changed',
  replace: 'changed',
  delete: 'removed',
};

/** Opens a stream of what happened in these collections after `token`, or from now on; with where it begins. */
export async function openStream(
  client: MongoClient,
  collections: readonly string[],
  token: Document | null,
): Promise<{ stream: Stream; token: Document }> {
  const images = { fullDocument: 'whenAvailable', fullDocumentBeforeChange: 'whenAvailable' };
  const match = {
    'ns.coll': { $in: collections },
    operationType: { $in: Object.keys(KINDS) },
    // The packets of an object that was removed are many, and their end is nobody's news.
    $nor: [{ 'ns.coll': 'packets', operationType: 'delete' }],
  };
  const pipeline = [
    { $changeStream: { ...images, ...(token !== null && { resumeAfter: token }) } },
    { $match: match },
    // Only so does the stream get past a change that is, with its images, larger than an answer of the database may be.
    { $changeStreamSplitLargeEvent: {} },
  ];
  const command = { aggregate: 1, pipeline, cursor: { batchSize: 0 }, readConcern: { level: 'majority' } };
  const session = client.startSession();
  try {
    const { cursor } = await client.db().command(command, { session, promoteLongs: false });
    return { stream: { client, id: cursor.id, session }, token: token ?? cursor.postBatchResumeToken };
  } catch (error) {
    await session.endSession();
    throw error;
  }
}

/** A change with the resume token that continues after it. */
export interface StreamChange extends Change {
  readonly token: Document;
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
  { client, id, session }: Stream,
  { waitMs, batchSize }: { waitMs: number; batchSize?: number },
): Promise<StreamBatch> {
  const command = { getMore: id, collection: '$cmd.aggregate', maxTimeMS: waitMs, ...(batchSize && { batchSize }) };
  const { cursor } = await client.db().command(command, { session, promoteLongs: false });
  const documents = cursor.nextBatch as Document[];
  const whole = documents.filter(({ splitEvent }) => splitEvent === undefined);
  return {
    changes: whole.map(toChange),
    token: cursor.postBatchResumeToken,
    skipped: documents.filter(({ splitEvent }) => splitEvent !== undefined && splitEvent.fragment === splitEvent.of)
      .length,
    writtenMs: whole.at(-1)?.wallTime?.getTime() ?? null,
    ended: cursor.id.isZero(),
  };
}

/** Lets go of a stream that broke: its cursor is not asked for, whoever has it may be gone. */
export async function dropStream({ session }: Stream): Promise<void> {
  await session.endSession().catch(() => undefined);
}

/** Lets go of a stream that works. */
export async function closeStream({ client, id, session }: Stream): Promise<void> {
  const kill = { killCursors: '$cmd.aggregate', cursors: [id] };
  await client
    .db()
    .command(kill, { session })
    .catch(() => undefined);
  await session.endSession().catch(() => undefined);
}

function toChange(document: Document): StreamChange {
  const store = document.ns.coll as string;
  return {
    store,
    kind: KINDS[document.operationType] as Change['kind'],
    id: String(toPlain(document.documentKey._id)),
    before: toImage(store, document.fullDocumentBeforeChange),
    after: toImage(store, document.fullDocument),
    position: toPosition(document._id),
    token: document._id,
  };
}

function toImage(store: string, document: Document | null | undefined): JsonObject | null {
  // What a session holds is nobody's news.
  if (document === null || document === undefined || store === 'sessions') return null;
  return toEntity(STORES.get(store) ?? { hidden: [] }, document);
}

/** The stream's resume token, its hexadecimal digits packed: opaque, URL-safe, increasing. */
export function toPosition(token: Document): string {
  return Buffer.from(token._data, 'hex').toString('base64url');
}

/** The resume token of a position; whether it is one of this database only the database can say. */
export function toToken(position: string): Document {
  return { _data: Buffer.from(position, 'base64url').toString('hex').toUpperCase() };
}
