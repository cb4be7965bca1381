/**
 * A change stream as commands of its own: opened after a position, read batch by batch, and what it says as Changes. Its
 * replies stay bytes: packets, which are most of them, become JSON without becoming objects.
 */
import { BSON, BSONType, type ClientSession, type Document, type Long, type MongoClient } from 'mongodb';
import type { Change } from '../model/change.js';
import type { JsonObject } from '../model/json.js';
import { STORES } from '../model/stores.js';
import { findField, readBatch, readObjectId } from './bson.js';
import { toEntity, toPlain } from './documents.js';
import { toJson } from './json.js';

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

/**
 * The log of security events is read, not followed. One list for every stream: where a change is filtered out, the database
 * cannot find the place after it.
 */
const WATCHED = [...STORES.keys(), 'packets', 'sessions', 'presence'].filter((name) => name !== 'audit');

/** Opens a stream of what happened after `token`, or from now on; with where it begins. */
export async function openStream(
  client: MongoClient,
  token: Document | null,
): Promise<{ stream: Stream; token: Document }> {
  const images = { fullDocument: 'whenAvailable', fullDocumentBeforeChange: 'whenAvailable' };
  const match = {
    'ns.coll': { $in: WATCHED },
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
    return { stream: { client, id: cursor.id as Long, session }, token: token ?? cursor.postBatchResumeToken };
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
  { waitMs, batchSize }: { waitMs: number; batchSize: number },
): Promise<StreamBatch> {
  const command = { getMore: id, collection: '$cmd.aggregate', maxTimeMS: waitMs, batchSize };
  const { cursor } = await client.db().command(command, { session, raw: true });
  const { cursorId, documents } = readBatch(cursor);
  const pieces = documents.filter((event) => pieceOf(event) !== null);
  const whole = pieces.length === 0 ? documents : documents.filter((event) => pieceOf(event) === null);
  return {
    changes: whole.map(toChange),
    token: BSON.deserialize(findField(cursor, 'postBatchResumeToken', BSONType.object) ?? missing('token')),
    skipped: pieces.map(pieceOf).filter((piece) => piece?.fragment === piece?.of).length,
    writtenMs: writtenMsOf(whole.at(-1)),
    ended: cursorId === 0n,
  };
}

// Which piece it is of a change too large to be told at once; null for a whole one.
function pieceOf(event: Uint8Array): Document | null {
  const piece = findField(event, 'splitEvent', BSONType.object);
  return piece && BSON.deserialize(piece);
}

function writtenMsOf(event: Uint8Array | undefined): number | null {
  const written = event && findField(event, 'wallTime', BSONType.date);
  return written ? Number(written.readBigInt64LE()) : null;
}

const missing = (what: string): never => {
  throw new TypeError(`the change stream told no ${what}`);
};

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

function toChange(event: Uint8Array): StreamChange {
  const place = findField(event, 'ns', BSONType.object) ?? missing('namespace');
  const store = textOf(place, 'coll');
  try {
    if (store === 'packets') return toNewPacket(event);
  } catch {
    // It holds what only others can have written there: a type without a JSON form of its own.
  }
  return toEntityChange(store, BSON.deserialize(event), event.length);
}

const textOf = (bytes: Uint8Array, name: string): string =>
  (findField(bytes, name, BSONType.string) ?? missing(name)).toString('utf8', 4).slice(0, -1);

function tokenOf(event: Uint8Array): Document {
  return { _data: textOf(findField(event, '_id', BSONType.object) ?? missing('token'), '_data') };
}

// Of packets the stream tells only that they were stored.
function toNewPacket(event: Uint8Array): StreamChange {
  const packet = findField(event, 'fullDocument', BSONType.object) ?? missing('packet');
  const json = toJson(packet);
  const token = tokenOf(event);
  let after: JsonObject | null = null;
  return {
    ...{ store: 'packets', kind: 'created', id: readObjectId(packet) ?? missing('_id'), before: null, json },
    bytes: event.length,
    get after() {
      after ??= JSON.parse(json.toString()) as JsonObject;
      return after;
    },
    objectId: findField(packet, '_oid', BSONType.objectId)?.toString('hex') ?? null,
    position: toPosition(token),
    token,
  };
}

function toEntityChange(store: string, event: Document, bytes: number): StreamChange {
  const id = String(toPlain(event.documentKey._id));
  const after = toImage(store, event.fullDocument);
  const owner = store === 'packets' ? after?._oid : store === 'commands' ? after?.object : null;
  return {
    ...{ store, kind: KINDS[event.operationType] as Change['kind'], id, json: null, bytes },
    before: toImage(store, event.fullDocumentBeforeChange),
    after,
    objectId: store === 'objects' ? id : typeof owner === 'string' ? owner : null,
    position: toPosition(event._id),
    token: event._id,
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
