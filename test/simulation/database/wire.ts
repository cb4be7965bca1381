/**
 * What the driver sends, as the database receives it, and the bytes of replies: the same as by way of BSON, in a fraction of the time. Stored
 * documents never change, so that their bytes are made once.
 */
import { Binary, BSON, type Document, Double, Int32, Long } from 'mongodb';

/** A copy in which numbers are those of JavaScript, but for longs, and bytes are `Binary`. */
export function received(document: Document, ignoreUndefined: boolean): Document {
  const copy: Document = {};
  const names = document instanceof Map ? document.keys() : Object.keys(document);
  for (const name of names) {
    const value = document instanceof Map ? document.get(name) : document[name];
    if (typeof value === 'function' || (value === undefined && ignoreUndefined)) continue;
    copy[name] = receivedValue(value, ignoreUndefined);
  }
  return copy;
}

function receivedValue(value: unknown, ignoreUndefined: boolean): unknown {
  if (value === undefined) return null;
  if (typeof value === 'bigint') return Long.fromBigInt(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => receivedValue(item, ignoreUndefined));
  if (value instanceof Date) return new Date(value);
  if (value instanceof RegExp) return value;
  if (value instanceof Int32 || value instanceof Double) return value.valueOf();
  if (value instanceof Binary) return new Binary(Buffer.from(value.value()), value.sub_type);
  if (value instanceof Uint8Array) return new Binary(Buffer.from(value));
  // All others of BSON never change.
  if ('_bsontype' in value) return value;
  if ('toBSON' in value && typeof value.toBSON === 'function') return receivedValue(value.toBSON(), ignoreUndefined);
  return received(value, ignoreUndefined);
}

/** A copy of what was received. */
export function copyOf<T>(value: T): T {
  if (typeof value !== 'object' || value === null || '_bsontype' in value) return value;
  if (Array.isArray(value)) return value.map(copyOf) as T;
  if (value instanceof Date || value instanceof RegExp) return value;
  const copy: Document = {};
  for (const name of Object.keys(value)) copy[name] = copyOf((value as Document)[name]);
  return copy as T;
}

const known = new WeakMap<Document, Uint8Array>();

function bytesOf(document: Document): Uint8Array {
  const bytes = known.get(document) ?? BSON.serialize(document);
  known.set(document, bytes);
  return bytes;
}

const DOCUMENT = 0x03;
const ARRAY = 0x04;
const SIZE_BYTES = 4;
/** What a document has beside its members: its size and its end. */
const FRAME_BYTES = SIZE_BYTES + 1;

const headers = new Map<string, Uint8Array>();

/** The type and the name of a member: few, which are written again and again. */
function header(type: number, name: string): Uint8Array {
  const key = `${String.fromCharCode(type)}${name}\0`;
  const bytes = headers.get(key) ?? Buffer.from(key, 'latin1');
  headers.set(key, bytes);
  return bytes;
}

/** The bytes of a reply. Those of stored documents in its batch are not made again. */
export function toReplyBytes({ cursor, ...reply }: Document): Uint8Array {
  if (cursor === undefined) return BSON.serialize(reply);
  const { firstBatch, nextBatch, ...rest } = cursor;
  const items: Uint8Array[] = [];
  for (const document of (firstBatch ?? nextBatch) as Document[])
    items.push(header(DOCUMENT, String(items.length >> 1)), bytesOf(document));
  const batch = wrapped(items);
  const name = header(ARRAY, firstBatch === undefined ? 'nextBatch' : 'firstBatch');
  const whole = wrapped([header(DOCUMENT, 'cursor'), wrapped([name, batch, membersOf(rest)]), membersOf(reply)]);
  const bytes = Buffer.allocUnsafe(whole.size);
  write(whole, bytes, 0);
  return bytes;
}

const membersOf = (document: Document): Uint8Array => BSON.serialize(document).subarray(SIZE_BYTES, -1);

/** A document whose bytes are written when all of it is known. */
interface Wrapped {
  readonly size: number;
  readonly members: readonly (Uint8Array | Wrapped)[];
}

function wrapped(members: Wrapped['members']): Wrapped {
  let size = FRAME_BYTES;
  for (const member of members) size += member instanceof Uint8Array ? member.length : member.size;
  return { size, members };
}

/** Returns where it ends. */
function write({ size, members }: Wrapped, bytes: Buffer, start: number): number {
  bytes.writeInt32LE(size, start);
  let at = start + SIZE_BYTES;
  for (const member of members) {
    if (member instanceof Uint8Array) {
      bytes.set(member, at);
      at += member.length;
    } else at = write(member, bytes, at);
  }
  bytes[at] = 0;
  return at + 1;
}
