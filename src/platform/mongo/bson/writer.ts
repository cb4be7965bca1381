/**
 * Serializes documents to BSON. Unlike the driver's serializer it treats no name specially: `_bsontype` and `toBSON` become plain
 * members, so that no value of a client can make a write fail. It also takes half the time for a packet (1.0 instead of 1.8 µs),
 * because one pass measures and writes.
 */
import { type Document, ObjectId } from 'mongodb';
import { NewPacketKey } from './packet-key.js';
import { BSON_TYPES, PACKET_KEY } from './reader.js';

const { DOUBLE, STRING, DOCUMENT, ARRAY, BINARY, OBJECT_ID, BOOLEAN, DATE, NULL, INT32 } = BSON_TYPES;
const OBJECT_ID_BYTES = 12;
/** More than any value takes in addition to its name and text. */
const VALUE_BYTES = 32;
/** Up to this length, a loop copies a text faster than Node.js. */
const SHORT_CHARACTERS = 32;
/** The most UTF-8 bytes of one UTF-16 code unit. */
const UNIT_BYTES = 3;
/** Enough for any packet, and for nearly every entity. */
const KEPT_BYTES = 256 * 1_024;

/** Thrown internally to leave a document that is too large. */
const TOO_LARGE = new RangeError('the document is too large');

/** The largest document of MongoDB, and the largest operation of a command. */
export const DOCUMENT_BYTES = 16 * 1_024 * 1_024;

/** The buffer for one document after the other; a large document gets its own. */
const kept = Buffer.allocUnsafeSlow(KEPT_BYTES);
let buffer = kept;
/** The size limit of the current document. */
let max = 0;

/**
 * Serializes a document; null beyond `maxBytes`. Supports JSON values, ObjectIds, Dates and packet keys. Like the driver, omits
 * `undefined`, and writes it as null in lists. Throws a TypeError for any other value.
 */
export function toBson(document: Document, maxBytes: number): Buffer | null {
  max = maxBytes;
  try {
    const bytes = writeDocument(document, 0);
    if (bytes > maxBytes) return null;
    const bson = Buffer.allocUnsafe(bytes);
    buffer.copy(bson, 0, 0, bytes);
    return bson;
  } catch (error) {
    if (error === TOO_LARGE) return null;
    throw error;
  } finally {
    buffer = kept;
  }
}

function writeDocument(document: Document, start: number): number {
  let pos = start + 4;
  for (const name in document) pos = writeMember(name, document[name], pos);
  return end(start, pos);
}

function writeList(items: readonly unknown[], start: number): number {
  let pos = start + 4;
  for (let i = 0; i < items.length; i++) pos = writeMember(String(i), items[i] ?? null, pos);
  return end(start, pos);
}

function end(start: number, pos: number): number {
  ensureSpace(pos, 0);
  buffer[pos] = 0;
  writeInt32(pos + 1 - start, start);
  return pos + 1;
}

function writeMember(name: string, value: unknown, start: number): number {
  if (value === undefined) return start;
  ensureSpace(start, name.length);
  const pos = writeName(name, start + 1);
  switch (typeof value) {
    case 'number':
      return writeNumber(value, start, pos);
    case 'string':
      buffer[start] = STRING;
      return writeString(value, pos);
    case 'boolean':
      buffer[start] = BOOLEAN;
      buffer[pos] = value ? 1 : 0;
      return pos + 1;
    case 'object':
      return writeObject(value, start, pos);
    default:
      throw new TypeError(`cannot serialize a ${typeof value}`);
  }
}

/** `start` is the offset of the type, `pos` the offset of the value. */
function writeObject(value: object | null, start: number, pos: number): number {
  if (value === null) {
    buffer[start] = NULL;
    return pos;
  }
  if (Array.isArray(value)) {
    buffer[start] = ARRAY;
    return writeList(value, pos);
  }
  if (value instanceof ObjectId) {
    buffer[start] = OBJECT_ID;
    return writeObjectId(value, pos);
  }
  if (value instanceof NewPacketKey) {
    buffer[start] = BINARY;
    const bytes = writeInt32(PACKET_KEY.BYTES, pos);
    buffer[bytes] = PACKET_KEY.SUBTYPE;
    return writeObjectId(value.object, writeObjectId(value.own, bytes + 1));
  }
  if (value instanceof Date) {
    buffer[start] = DATE;
    return buffer.writeBigInt64LE(BigInt(value.getTime()), pos);
  }
  const kind: unknown = Object.getPrototypeOf(value);
  if (kind !== Object.prototype && kind !== null) throw new TypeError(`cannot serialize a ${value.constructor.name}`);
  buffer[start] = DOCUMENT;
  return writeDocument(value, pos);
}

function writeObjectId({ id }: ObjectId, pos: number): number {
  for (let i = 0; i < OBJECT_ID_BYTES; i++) buffer[pos + i] = id[i] as number;
  return pos + OBJECT_ID_BYTES;
}

function writeNumber(value: number, start: number, pos: number): number {
  // Negative zero has no integer form.
  if ((value | 0) === value && !Object.is(value, -0)) {
    buffer[start] = INT32;
    return writeInt32(value, pos);
  }
  buffer[start] = DOUBLE;
  return buffer.writeDoubleLE(value, pos);
}

function writeInt32(value: number, pos: number): number {
  buffer[pos] = value;
  buffer[pos + 1] = value >>> 8;
  buffer[pos + 2] = value >>> 16;
  buffer[pos + 3] = value >>> 24;
  return pos + 4;
}

// A name ends at the first NUL, so that the rest of it would be read as a value.
function writeName(name: string, start: number): number {
  if (name.includes('\0')) throw new TypeError('a field name contains a NUL');
  const pos = writeText(name, start);
  buffer[pos] = 0;
  return pos + 1;
}

function writeString(text: string, start: number): number {
  ensureSpace(start, text.length);
  const pos = writeText(text, start + 4);
  buffer[pos] = 0;
  writeInt32(pos - start - 3, start);
  return pos + 1;
}

function writeText(text: string, start: number): number {
  const { length } = text;
  if (length > SHORT_CHARACTERS) return start + buffer.write(text, start);
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code > 127) return start + buffer.write(text, start);
    buffer[start + i] = code;
  }
  return start + length;
}

/** Ensures space for a value with `units` code units. */
function ensureSpace(pos: number, units: number): void {
  const wanted = pos + units * UNIT_BYTES + VALUE_BYTES;
  if (wanted <= buffer.length) return;
  if (pos + units > max) throw TOO_LARGE;
  const larger = Buffer.allocUnsafeSlow(Math.max(wanted, 2 * buffer.length));
  buffer.copy(larger, 0, 0, pos);
  buffer = larger;
}
