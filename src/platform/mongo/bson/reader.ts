/** Reads BSON bytes without building objects: bounds of values, and single members. */

export const BSON_TYPES = {
  DOUBLE: 1,
  STRING: 2,
  DOCUMENT: 3,
  ARRAY: 4,
  BINARY: 5,
  UNDEFINED: 6,
  OBJECT_ID: 7,
  BOOLEAN: 8,
  DATE: 9,
  NULL: 10,
  INT32: 16,
  TIMESTAMP: 17,
  INT64: 18,
} as const;
const { STRING, DOCUMENT, ARRAY, BINARY, OBJECT_ID } = BSON_TYPES;

/** The size of a value by its type; -1 when the value includes its length, or when the type is not supported. */
const SIZES = Int8Array.of(-1, 8, -1, -1, -1, -1, 0, 12, 1, 8, 0, -1, -1, -1, -1, -1, 4, 8, 8, 16);

export const byteAt = (bytes: Uint8Array, pos: number): number => bytes[pos] as number;
export const int32 = (bytes: Uint8Array, pos: number): number =>
  byteAt(bytes, pos) | (byteAt(bytes, pos + 1) << 8) | (byteAt(bytes, pos + 2) << 16) | (byteAt(bytes, pos + 3) << 24);
export const int64 = (bytes: Uint8Array, pos: number): number =>
  int32(bytes, pos + 4) * 2 ** 32 + (int32(bytes, pos) >>> 0);

/** The offset of a member's value, after its name. */
export function valueStart(bson: Uint8Array, nameStart: number): number {
  let pos = nameStart;
  while (byteAt(bson, pos) !== 0) pos++;
  return pos + 1;
}

/** Every length is checked here, so that the writers need no checks of their own. */
export function valueEnd(bson: Uint8Array, type: number, start: number, limit: number): number {
  // Binary data has no JSON form, but is skipped on the way to another member.
  const size = type === BINARY ? 5 + Math.max(0, int32(bson, start)) : (SIZES[type] ?? -1);
  if (size >= 0 && start + size <= limit) return start + size;
  if (size < 0 && type !== STRING && type !== DOCUMENT && type !== ARRAY) throw new TypeError(`BSON type ${type}`);
  const end = size < 0 ? start + int32(bson, start) + (type === STRING ? 4 : 0) : limit + 1;
  if (end < start + 5 || end > limit || bson[end - 1] !== 0) throw new RangeError(`bad BSON length pos byte ${start}`);
  return end;
}

/** The offset of a member's value in the document that begins at `start`; -1 without a member of that name (ASCII) and type. */
export function findValue(buffer: Uint8Array, start: number, name: string, wanted: number): number {
  const limit = valueEnd(buffer, DOCUMENT, start, buffer.length) - 1;
  for (let pos = start + 4; pos < limit; ) {
    const type = byteAt(buffer, pos++);
    let same = 0;
    while (same < name.length && buffer[pos + same] === name.charCodeAt(same)) same++;
    const found = same === name.length && buffer[pos + same] === 0;
    // Of another type: what comes after it, maybe of types that cannot be skipped, does not matter.
    if (found && type !== wanted) return -1;
    const value = valueStart(buffer, pos);
    pos = valueEnd(buffer, type, value, limit);
    if (found) return value;
  }
  return -1;
}

export const viewOf = (bson: Uint8Array, start: number, end: number): Buffer =>
  Buffer.from(bson.buffer, bson.byteOffset + start, end - start);

/** A view of a top-level member's value; null without a member of that name (ASCII) and type. */
export function findField(bson: Uint8Array, name: string, wanted: number): Buffer | null {
  const start = findValue(bson, 0, name, wanted);
  if (start === -1) return null;
  return viewOf(bson, start, valueEnd(bson, wanted, start, bson.length));
}

/** Whether a document has a top-level member with another name than these (ASCII, each at most once). */
export function hasOthers(bson: Uint8Array, names: readonly string[]): boolean {
  const limit = bson.length - 1;
  let members = 0;
  for (let pos = 4; pos < limit; pos = valueEnd(bson, byteAt(bson, pos), valueStart(bson, pos + 1), limit)) {
    // With more members than names, one of them has another name.
    if (++members > names.length) return true;
  }
  for (let pos = 4; pos < limit; pos = valueEnd(bson, byteAt(bson, pos), valueStart(bson, pos + 1), limit)) {
    const end = valueStart(bson, pos + 1) - 1;
    if (!names.includes(viewOf(bson, pos + 1, end).toString('latin1'))) return true;
  }
  return false;
}

/** The hex digits of an ObjectId member of the document that begins at `start`; null when it is missing or of another type. */
export function readObjectId(bson: Uint8Array, name = '_id', start = 0): string | null {
  const value = findValue(bson, start, name, OBJECT_ID);
  return value === -1 ? null : viewOf(bson, value, value + 12).toString('hex');
}

/** The form of a packet's key as binary data (packet-key.ts); the subtype distinguishes it from foreign data. */
export const PACKET_KEY = { BYTES: 24, SUBTYPE: 0x80, OWN_BYTES: 12 } as const;
const KEY_START = 5;

/** The offset of a packet's `_id` in its key; -1 for other binary data. */
export const packetIdAt = (bson: Uint8Array, value: number): number =>
  int32(bson, value) === PACKET_KEY.BYTES && bson[value + 4] === PACKET_KEY.SUBTYPE ? value + KEY_START : -1;

/** The `_id` (hex digits) that clients see of the document that begins at `start`; of a packet's key, only its own `_id`. */
export function readShownId(bson: Uint8Array, start = 0): string | null {
  const id = readObjectId(bson, '_id', start);
  const key = id === null ? findValue(bson, start, '_id', BINARY) : -1;
  const pos = key === -1 ? -1 : packetIdAt(bson, key);
  return pos === -1 ? id : viewOf(bson, pos, pos + PACKET_KEY.OWN_BYTES).toString('hex');
}

/** The ObjectIds (hex digits) of a top-level list; empty when there is no such list. */
export const readObjectIds = (bson: Uint8Array, name: string): string[] =>
  Array.from(objectIdsIn(bson, name), (pos) => viewOf(bson, pos, pos + 12).toString('hex'));

/** Whether a top-level list contains this ObjectId. */
export function holdsObjectId(bson: Uint8Array, name: string, id: string): boolean {
  const wanted = Buffer.from(id, 'hex');
  for (const pos of objectIdsIn(bson, name)) if (isEqualValue(wanted, 0, wanted.length, bson, pos)) return true;
  return false;
}

/** The offsets of the ObjectIds in a top-level list. */
function* objectIdsIn(bson: Uint8Array, name: string): Generator<number> {
  const list = findValue(bson, 0, name, ARRAY);
  const end = list === -1 ? 0 : list + int32(bson, list) - 1;
  for (let pos = list + 4; pos < end; ) {
    const type = byteAt(bson, pos);
    const value = valueStart(bson, pos + 1);
    pos = valueEnd(bson, type, value, end);
    if (type === OBJECT_ID) yield value;
  }
}

/** A string member of the document that begins at `start`; empty when it is missing. */
export function readText(bson: Uint8Array, name: string, start = 0): string {
  const value = findValue(bson, start, name, STRING);
  return value === -1 ? '' : viewOf(bson, value + 4, value + 3 + int32(bson, value)).toString();
}

/** The names of top-level members that differ, or that only one of the documents has. */
export function differingMembers(before: Buffer, after: Buffer): string[] {
  const beforeEnd = before.length - 1;
  const afterEnd = after.length - 1;
  const differing: string[] = [];
  let left = 4;
  let right = 4;
  while (left < beforeEnd && right < afterEnd) {
    const leftEnd = memberEnd(before, left);
    const rightEnd = memberEnd(after, right);
    if (!isEqualValue(before, left, leftEnd, after, right)) {
      const name = nameAt(before, left);
      if (name !== nameAt(after, right)) break;
      differing.push(name);
    }
    [left, right] = [leftEnd, rightEnd];
  }
  // Members that were added, removed or moved.
  const leftRest = restOf(before, left);
  const rightRest = restOf(after, right);
  for (const [name, member] of leftRest) if (!rightRest.get(name)?.equals(member)) differing.push(name);
  for (const name of rightRest.keys()) if (!leftRest.has(name)) differing.push(name);
  return differing;
}

const memberEnd = (bson: Buffer, start: number): number =>
  valueEnd(bson, byteAt(bson, start), valueStart(bson, start + 1), bson.length - 1);
const nameAt = (bson: Buffer, start: number): string => bson.toString('utf8', start + 1, bson.indexOf(0, start + 1));

/** Whether the bytes from `start` to `end` equal those of `other` from `otherStart` on. */
function isEqualValue(bson: Uint8Array, start: number, end: number, other: Uint8Array, otherStart: number): boolean {
  for (let i = 0; i < end - start; i++) if (bson[start + i] !== other[otherStart + i]) return false;
  return true;
}

function restOf(bson: Buffer, start: number): Map<string, Buffer> {
  const rest = new Map<string, Buffer>();
  for (let pos = start; pos < bson.length - 1; pos = memberEnd(bson, pos)) {
    rest.set(nameAt(bson, pos), bson.subarray(pos, memberEnd(bson, pos)));
  }
  return rest;
}

/** A view of the document that begins at `start`. */
export const documentAt = (buffer: Buffer, start: number): Buffer =>
  buffer.subarray(start, start + int32(buffer, start));
