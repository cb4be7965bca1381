/**
 * What the driver sends, as the database receives it, and the bytes of replies: the same as by way of BSON, in a fraction of the time. Stored
 * documents never change, so that their bytes are made once.
 */
import { Binary, BSON, type Document, Double, Int32, Long } from 'mongodb';

/** A copy in which numbers are those of JavaScript, but for longs, and bytes are `Binary`. */
export function received(document: Document, ignoreUndefined: boolean): Document {
  const copy: Document = {};
  const entries = document instanceof Map ? document.entries() : Object.entries(document);
  for (const [name, value] of entries) {
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

export function toReplyBytes({ cursor, ...reply }: Document): Uint8Array {
  if (cursor === undefined) return BSON.serialize(reply);
  const { firstBatch, nextBatch, ...rest } = cursor;
  const items = ((firstBatch ?? nextBatch) as Document[]).flatMap((document, nth) => [
    header(DOCUMENT, String(nth)),
    bytesOf(document),
  ]);
  const batch = [header(ARRAY, firstBatch === undefined ? 'nextBatch' : 'firstBatch'), wrap(items)];
  return wrap([header(DOCUMENT, 'cursor'), wrap([...batch, membersOf(rest)]), membersOf(reply)]);
}

const header = (type: number, name: string): Buffer => Buffer.from(`${String.fromCharCode(type)}${name}\0`, 'latin1');

const membersOf = (document: Document): Uint8Array => BSON.serialize(document).subarray(SIZE_BYTES, -1);

function wrap(members: readonly Uint8Array[]): Buffer {
  const size = members.reduce((sum, { length }) => sum + length, SIZE_BYTES + 1);
  const bytes = Buffer.alloc(size);
  bytes.writeInt32LE(size);
  let at = SIZE_BYTES;
  for (const member of members) {
    bytes.set(member, at);
    at += member.length;
  }
  return bytes;
}
