/**
 * A change stream as commands of its own: opened after a position, read batch by batch, and what it says as Changes. Its
 * replies stay bytes: packets, which are most of them, become JSON without becoming objects.
 */
import { BSON, BSONType, type ClientSession, type Document, type Long, type MongoClient } from 'mongodb';
import type { Change } from '../model/change.js';
import type { JsonObject } from '../model/json.js';
import { STORES } from '../model/stores.js';
import { documentAt, findField, findValue, readBatch } from './bson.js';
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
  const { cursorId, memory, starts } = readBatch(cursor);
  const events = [...starts()];
  const pieces = events.filter((event) => isPiece(memory, event)).map((event) => pieceOf(memory, event));
  const whole = pieces.length === 0 ? events : events.filter((event) => !isPiece(memory, event));
  return {
    changes: whole.map((event) => toChange(memory, event)),
    token: BSON.deserialize(findField(cursor, 'postBatchResumeToken', BSONType.object) ?? missing('token')),
    skipped: pieces.filter(({ fragment, of }) => fragment === of).length,
    writtenMs: writtenMsOf(memory, whole.at(-1)),
    ended: cursorId === 0n,
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
export async function closeStream({ client, id, session }: Stream): Promise<void> {
  const kill = { killCursors: '$cmd.aggregate', cursors: [id] };
  await client
    .db()
    .command(kill, { session })
    .catch(() => undefined);
  await session.endSession().catch(() => undefined);
}

function toChange(memory: Buffer, event: number): StreamChange {
  const store = textAt(memory, valueAt(memory, event, 'ns', BSONType.object), 'coll');
  const packet = store === 'packets' ? findValue(memory, event, 'fullDocument', BSONType.object) : -1;
  // Another kind of `_id` only others can have given it.
  if (packet !== -1 && findValue(memory, packet, '_id', BSONType.objectId) !== -1) {
    // A copy: who keeps this change for a while must not keep all that the database told with it.
    return new NewPacket(Buffer.from(documentAt(memory, event)), packet - event);
  }
  const whole = documentAt(memory, event);
  return toEntityChange(store, BSON.deserialize(whole), whole.length);
}

function valueAt(memory: Buffer, document: number, name: string, type: number): number {
  const value = findValue(memory, document, name, type);
  return value === -1 ? missing(name) : value;
}

function textAt(memory: Buffer, document: number, name: string): string {
  const value = valueAt(memory, document, name, BSONType.string);
  return memory.toString('utf8', value + 4, value + 3 + memory.readInt32LE(value));
}

const idAt = (memory: Buffer, document: number, name: string): string | null => {
  const value = findValue(memory, document, name, BSONType.objectId);
  return value === -1 ? null : memory.toString('hex', value, value + 12);
};

/**
 * Of packets the stream tells only that they were stored. Most are packets of objects that nobody looks at: what is in one
 * is read where it is asked for.
 */
class NewPacket implements StreamChange {
  readonly store = 'packets';
  readonly kind = 'created';
  readonly before = null;
  readonly objectId: string | null;
  readonly #event: Buffer;
  /** Where the packet begins in it. */
  readonly #packet: number;
  #position = '';

  constructor(event: Buffer, packet: number) {
    this.#event = event;
    this.#packet = packet;
    this.objectId = idAt(event, packet, '_oid');
  }

  get id(): string {
    return idAt(this.#event, this.#packet, '_id') ?? missing('_id');
  }

  get bytes(): number {
    return this.#event.length;
  }

  get json(): Buffer {
    const packet = documentAt(this.#event, this.#packet);
    try {
      return toJson(packet);
    } catch {
      // It holds what only others can have written there: a type without a JSON form of its own.
      return Buffer.from(JSON.stringify(toImage('packets', BSON.deserialize(packet))));
    }
  }

  get after(): JsonObject {
    return JSON.parse(this.json.toString()) as JsonObject;
  }

  get position(): string {
    this.#position ||= toPosition(this.token);
    return this.#position;
  }

  get token(): Document {
    return { _data: textAt(this.#event, valueAt(this.#event, 0, '_id', BSONType.object), '_data') };
  }
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
