/**
 * Decodes events of a change stream to Changes. A Change keeps the bytes of its event and decodes members on access, because most
 * members are never read.
 */
import { BSON, BSONType, type Document } from 'mongodb';
import type { AccessFields } from '../../../core/access.js';
import type { Change } from '../../../core/change.js';
import { isId } from '../../../core/entity.js';
import type { JsonObject } from '../../../core/json.js';
import { STORES } from '../../../core/stores.js';
import { toJson } from '../bson/json-writer.js';
import {
  differingMembers,
  documentAt,
  findValue,
  readObjectId,
  readObjectIds,
  readShownId,
  readText,
} from '../bson/reader.js';
import { toEntity, toPlain } from '../schema/mapping.js';

export const KINDS: Readonly<Record<string, Change['kind']>> = {
  insert: 'created',
  update: 'changed',
  replace: 'changed',
  delete: 'removed',
};

/** A change with the resume token that continues after it. */
export interface StreamChange extends Change {
  readonly token: Document;
  /** When it was written, by the database's clock. */
  readonly writtenMs: number;
}

/**
 * Whether the event that begins at this offset is a packet that became a row again from its bucket, which happens in transactions
 * alone, while new packets are never inserted in one. Only here: the database would look for `txnNumber` in its oplog, where
 * retryable inserts have one, too, and drop new packets.
 */
export const isUnpacked = (memory: Buffer, event: number): boolean =>
  findValue(memory, event, 'txnNumber', BSONType.long) !== -1 && storeOf(memory, event) === 'packets';

const storeOf = (memory: Buffer, event: number): string =>
  readText(memory, 'coll', valueAt(memory, event, 'ns', BSONType.object)) || missing('collection');

/** Decodes the event that begins at offset `event`. */
export function toChange(memory: Buffer, event: number): StreamChange {
  const store = storeOf(memory, event);
  const packet = store === 'packets' ? findValue(memory, event, 'fullDocument', BSONType.object) : -1;
  // A copy: keeping one change must not keep the memory of its whole batch.
  const copy = Buffer.from(documentAt(memory, event));
  return packet !== -1 && isPacket(memory, packet)
    ? new NewPacket(copy, packet - event)
    : new EntityChange(store, copy);
}

// Only foreign writers use other types of `_id`.
const isPacket = (memory: Buffer, packet: number): boolean =>
  [BSONType.binData, BSONType.objectId].some((type) => findValue(memory, packet, '_id', type) !== -1);

const missing = (name: string): never => {
  throw new TypeError(`the change stream has no ${name}`);
};

function valueAt(memory: Buffer, document: number, name: string, type: number): number {
  const value = findValue(memory, document, name, type);
  return value === -1 ? missing(name) : value;
}

function writtenMsOf(event: Buffer): number {
  const written = findValue(event, 0, 'wallTime', BSONType.date);
  return written === -1 ? 0 : Number(event.readBigInt64LE(written));
}

const tokenOf = (event: Buffer): Document => ({
  _data: readText(event, '_data', valueAt(event, 0, '_id', BSONType.object)) || missing('token'),
});

/** What every change has: where and when it was written. */
class StreamEvent {
  protected readonly event: Buffer;
  #position = '';

  constructor(event: Buffer) {
    this.event = event;
  }

  get bytes(): number {
    return this.event.length;
  }

  get position(): string {
    this.#position ||= toPosition(this.token);
    return this.#position;
  }

  get token(): Document {
    return tokenOf(this.event);
  }

  get writtenMs(): number {
    return writtenMsOf(this.event);
  }
}

/** The insertion of a packet. The stream has no other changes of packets. */
class NewPacket extends StreamEvent implements StreamChange {
  readonly store = 'packets';
  readonly kind = 'created';
  readonly before = null;
  readonly changed = null;
  readonly accessFields = null;
  readonly accessFieldsBefore = null;
  readonly objectId: string | null;
  /** The offset of the packet in the event. */
  readonly #packet: number;

  constructor(event: Buffer, packet: number) {
    super(event);
    this.#packet = packet;
    this.objectId = readOwnObject(event, packet);
  }

  get id(): string {
    return readShownId(this.event, this.#packet) ?? missing('_id');
  }

  get isOffline(): boolean {
    const online = findValue(this.event, this.#packet, 'online', BSONType.bool);
    return online !== -1 && this.event[online] === 0;
  }

  get json(): Buffer {
    const packet = documentAt(this.event, this.#packet);
    try {
      return toJson(packet);
    } catch {
      // A foreign writer stored a type without a JSON form.
      return Buffer.from(JSON.stringify(toImage('packets', packet)));
    }
  }

  get after(): JsonObject {
    return JSON.parse(this.json.toString()) as JsonObject;
  }
}

/** The object that the packet belongs to. */
function readOwnObject(event: Buffer, packet: number): string | null {
  try {
    return readObjectId(event, '_oid', packet);
  } catch {
    // A type without a JSON form stands before it.
    const id = toImage('packets', documentAt(event, packet))?._oid;
    return typeof id === 'string' && isId(id) ? id : null;
  }
}

/** A change of any other document, with its states before and after. */
class EntityChange extends StreamEvent implements StreamChange {
  readonly store: string;
  readonly kind: Change['kind'];
  readonly id: string;
  readonly json = null;
  readonly #before: Buffer | null;
  readonly #after: Buffer | null;
  /** Members that were decoded already. */
  readonly #decoded: { before?: JsonObject | null; after?: JsonObject | null; changed?: readonly string[] } = {};

  constructor(store: string, event: Buffer) {
    super(event);
    this.store = store;
    this.kind = KINDS[readText(event, 'operationType')] ?? missing('kind');
    this.id = readKey(documentAt(event, valueAt(event, 0, 'documentKey', BSONType.object)));
    this.#before = imageIn(store, event, 'fullDocumentBeforeChange');
    this.#after = imageIn(store, event, 'fullDocument');
  }

  get before(): JsonObject | null {
    if (this.#decoded.before === undefined) this.#decoded.before = toImage(this.store, this.#before);
    return this.#decoded.before;
  }

  get after(): JsonObject | null {
    if (this.#decoded.after === undefined) this.#decoded.after = toImage(this.store, this.#after);
    return this.#decoded.after;
  }

  get changed(): readonly string[] | null {
    if (this.#before === null || this.#after === null) return null;
    this.#decoded.changed ??= changedFields(this.#before, this.#after);
    return this.#decoded.changed;
  }

  get accessFields(): AccessFields | null {
    return accessFieldsIn(this.#after);
  }

  get accessFieldsBefore(): AccessFields | null {
    return accessFieldsIn(this.#before);
  }

  get objectId(): string | null {
    if (this.store === 'objects') return this.id;
    const name = ({ packets: '_oid', commands: 'object', alarms: 'object' } as Readonly<Record<string, string>>)[
      this.store
    ];
    return name === undefined || this.#after === null ? null : readObjectId(this.#after, name);
  }
}

function accessFieldsIn(image: Buffer | null): AccessFields | null {
  const owner = image === null ? null : readObjectId(image, 'owner');
  if (image === null || owner === null) return null;
  return { owner, branch: readObjectIds(image, 'branch'), access: readObjectIds(image, 'access') };
}

// The content of sessions stays private.
function imageIn(store: string, event: Buffer, name: string): Buffer | null {
  const start = store === 'sessions' ? -1 : findValue(event, 0, name, BSONType.object);
  return start === -1 ? null : documentAt(event, start);
}

// The keys of sessions and of internal documents are strings.
const readKey = (key: Buffer): string =>
  readObjectId(key) ?? (readText(key, '_id') || String(toPlain(BSON.deserialize(key)._id)));

function changedFields(before: Buffer, after: Buffer): readonly string[] {
  try {
    return differingMembers(before, after);
  } catch {
    // A foreign writer stored a type that the reader does not support.
    const earlier = BSON.deserialize(before);
    const later = BSON.deserialize(after);
    const textOf = (value: unknown) => JSON.stringify(toPlain(value));
    return [...new Set([...Object.keys(earlier), ...Object.keys(later)])].filter(
      (name) => textOf(earlier[name]) !== textOf(later[name]),
    );
  }
}

function toImage(store: string, document: Buffer | null): JsonObject | null {
  return document && toEntity(STORES.get(store) ?? { hidden: [] }, BSON.deserialize(document));
}

/** Converts a resume token to a position: its hexadecimal digits as base64url, URL-safe and in the same order. */
export function toPosition(token: Document): string {
  return Buffer.from(token._data, 'hex').toString('base64url');
}

/** Converts a position to a resume token. Only the database can tell whether the token is valid. */
export function toToken(position: string): Document {
  return { _data: Buffer.from(position, 'base64url').toString('hex').toUpperCase() };
}
