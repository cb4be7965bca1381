/**
 * What a change stream says, as Changes. They keep its bytes: most of them are of things that nobody looks at, so what is
 * in one is read where it is asked for.
 */
import { BSON, BSONType, type Document } from 'mongodb';
import type { Guarded } from '../model/access.js';
import type { Change } from '../model/change.js';
import type { JsonObject } from '../model/json.js';
import { STORES } from '../model/stores.js';
import { differingMembers, documentAt, findValue, readObjectId, readObjectIds, readShownId, readText } from './bson.js';
import { toEntity, toPlain } from './documents.js';
import { toJson } from './json.js';

export const KINDS: Readonly<Record<string, Change['kind']>> = {
  insert: 'created',
  update: 'changed',
  replace: 'changed',
  delete: 'removed',
};

/** A change with the resume token that continues after it. */
export interface StreamChange extends Change {
  readonly token: Document;
}

/** The change that begins there. */
export function toChange(memory: Buffer, event: number): StreamChange {
  const store = readText(memory, 'coll', valueAt(memory, event, 'ns', BSONType.object)) || missing('collection');
  const packet = store === 'packets' ? findValue(memory, event, 'fullDocument', BSONType.object) : -1;
  // A copy: who keeps this change for a while must not keep all that the database told with it.
  const copy = Buffer.from(documentAt(memory, event));
  return packet !== -1 && isPacket(memory, packet)
    ? new NewPacket(copy, packet - event)
    : new EntityChange(store, copy);
}

// Another kind of `_id` only others can have given it.
const isPacket = (memory: Buffer, packet: number): boolean =>
  [BSONType.binData, BSONType.objectId].some((type) => findValue(memory, packet, '_id', type) !== -1);

const missing = (what: string): never => {
  throw new TypeError(`the change stream told no ${what}`);
};

function valueAt(memory: Buffer, document: number, name: string, type: number): number {
  const value = findValue(memory, document, name, type);
  return value === -1 ? missing(name) : value;
}

const tokenOf = (event: Buffer): Document => ({
  _data: readText(event, '_data', valueAt(event, 0, '_id', BSONType.object)) || missing('token'),
});

/** Of packets the stream tells only that they were stored. */
class NewPacket implements StreamChange {
  readonly store = 'packets';
  readonly kind = 'created';
  readonly before = null;
  readonly changed = null;
  readonly guard = null;
  readonly objectId: string | null;
  readonly #event: Buffer;
  /** Where the packet begins in it. */
  readonly #packet: number;
  #position = '';

  constructor(event: Buffer, packet: number) {
    this.#event = event;
    this.#packet = packet;
    this.objectId = readObjectId(event, '_oid', packet);
  }

  get id(): string {
    return readShownId(this.#event, this.#packet) ?? missing('_id');
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
      return Buffer.from(JSON.stringify(toImage('packets', packet)));
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
    return tokenOf(this.#event);
  }
}

/** Of everything else it tells what it was before and what it is after. */
class EntityChange implements StreamChange {
  readonly store: string;
  readonly kind: Change['kind'];
  readonly id: string;
  readonly json = null;
  readonly #event: Buffer;
  readonly #before: Buffer | null;
  readonly #after: Buffer | null;
  /** What was made of them already. */
  readonly #made: { before?: JsonObject | null; after?: JsonObject | null; changed?: readonly string[] } = {};
  #position = '';

  constructor(store: string, event: Buffer) {
    this.store = store;
    this.#event = event;
    this.kind = KINDS[readText(event, 'operationType')] ?? missing('kind');
    this.id = readKey(documentAt(event, valueAt(event, 0, 'documentKey', BSONType.object)));
    this.#before = imageIn(store, event, 'fullDocumentBeforeChange');
    this.#after = imageIn(store, event, 'fullDocument');
  }

  get bytes(): number {
    return this.#event.length;
  }

  get before(): JsonObject | null {
    if (this.#made.before === undefined) this.#made.before = toImage(this.store, this.#before);
    return this.#made.before;
  }

  get after(): JsonObject | null {
    if (this.#made.after === undefined) this.#made.after = toImage(this.store, this.#after);
    return this.#made.after;
  }

  get changed(): readonly string[] | null {
    if (this.#before === null || this.#after === null) return null;
    this.#made.changed ??= changedFields(this.#before, this.#after);
    return this.#made.changed;
  }

  get guard(): Guarded | null {
    const owner = this.#after === null ? null : readObjectId(this.#after, 'owner');
    if (this.#after === null || owner === null) return null;
    return { owner, branch: readObjectIds(this.#after, 'branch'), access: readObjectIds(this.#after, 'access') };
  }

  get objectId(): string | null {
    if (this.store === 'objects') return this.id;
    const name = ({ packets: '_oid', commands: 'object' } as Readonly<Record<string, string>>)[this.store];
    return name === undefined || this.#after === null ? null : readObjectId(this.#after, name);
  }

  get position(): string {
    this.#position ||= toPosition(this.token);
    return this.#position;
  }

  get token(): Document {
    return tokenOf(this.#event);
  }
}

// What a session holds is nobody's news.
function imageIn(store: string, event: Buffer, name: string): Buffer | null {
  const start = store === 'sessions' ? -1 : findValue(event, 0, name, BSONType.object);
  return start === -1 ? null : documentAt(event, start);
}

// That of a session, and of what is the service's own, is a text.
const readKey = (key: Buffer): string =>
  readObjectId(key) ?? (readText(key, '_id') || String(toPlain(BSON.deserialize(key)._id)));

function changedFields(before: Buffer, after: Buffer): readonly string[] {
  try {
    return differingMembers(before, after);
  } catch {
    // One of them holds what only others can have written there.
    const [earlier, later] = [BSON.deserialize(before), BSON.deserialize(after)];
    const textOf = (value: unknown) => JSON.stringify(toPlain(value));
    return [...new Set([...Object.keys(earlier), ...Object.keys(later)])].filter(
      (name) => textOf(earlier[name]) !== textOf(later[name]),
    );
  }
}

function toImage(store: string, document: Buffer | null): JsonObject | null {
  return document && toEntity(STORES.get(store) ?? { hidden: [] }, BSON.deserialize(document));
}

/** The stream's resume token, its hexadecimal digits packed: opaque, URL-safe, increasing. */
export function toPosition(token: Document): string {
  return Buffer.from(token._data, 'hex').toString('base64url');
}

/** The resume token of a position; whether it is one of this database only the database can say. */
export function toToken(position: string): Document {
  return { _data: Buffer.from(position, 'base64url').toString('hex').toUpperCase() };
}
