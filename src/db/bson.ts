/** BSON bytes as they are: where values begin and end, single members, and the documents of a reply. Nothing is built. */

/** The documents of one reply, as parts of its memory. */
export interface Batch {
  /** 0 where there are no more. */
  readonly cursorId: bigint;
  readonly namespace: string;
  /** How large they are together. */
  readonly bytes: number;
  /** Where they are, and where each begins: thousands of views cost more than what is done with them. */
  readonly memory: Buffer;
  starts(): Iterable<number>;
  readonly documents: Buffer[];
}

/** The types of BSON that occur here. */
export const BSON_TYPES = {
  ...{
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
  },
  ...{ INT32: 16, INT64: 18 },
} as const;
const { STRING, DOCUMENT, ARRAY, BINARY, OBJECT_ID, INT64 } = BSON_TYPES;

/** The bytes of a value by its type; -1: the value tells its length, or the type is not supported. */
const SIZES = Int8Array.of(-1, 8, -1, -1, -1, -1, 0, 12, 1, 8, 0, -1, -1, -1, -1, -1, 4, 8, 8, 16);

export const byteAt = (bytes: Uint8Array, at: number): number => bytes[at] as number;
export const int32 = (bytes: Uint8Array, at: number): number =>
  byteAt(bytes, at) | (byteAt(bytes, at + 1) << 8) | (byteAt(bytes, at + 2) << 16) | (byteAt(bytes, at + 3) << 24);
export const int64 = (bytes: Uint8Array, at: number): number =>
  int32(bytes, at + 4) * 2 ** 32 + (int32(bytes, at) >>> 0);

function valueStart(bson: Uint8Array, nameStart: number): number {
  let at = nameStart;
  while (byteAt(bson, at) !== 0) at++;
  return at + 1;
}

/** Every length is checked here, so that the writers need no checks of their own. */
export function valueEnd(bson: Uint8Array, type: number, start: number, limit: number): number {
  // Binary data has no JSON form, but is passed over on the way to another member.
  const size = type === BINARY ? 5 + Math.max(0, int32(bson, start)) : (SIZES[type] ?? -1);
  if (size >= 0 && start + size <= limit) return start + size;
  if (size < 0 && type !== STRING && type !== DOCUMENT && type !== ARRAY) throw new TypeError(`BSON type ${type}`);
  const end = size < 0 ? start + int32(bson, start) + (type === STRING ? 4 : 0) : limit + 1;
  if (end < start + 5 || end > limit || bson[end - 1] !== 0) throw new RangeError(`bad BSON length at byte ${start}`);
  return end;
}

/** Where the value of a member of the document that begins at `start` is; -1: it has none of that name (ASCII) and type. */
export function findValue(memory: Uint8Array, start: number, name: string, wanted: number): number {
  const limit = valueEnd(memory, DOCUMENT, start, memory.length) - 1;
  for (let at = start + 4; at < limit; ) {
    const type = byteAt(memory, at++);
    let same = 0;
    while (same < name.length && memory[at + same] === name.charCodeAt(same)) same++;
    const found = type === wanted && same === name.length && memory[at + same] === 0;
    const value = valueStart(memory, at);
    at = valueEnd(memory, type, value, limit);
    if (found) return value;
  }
  return -1;
}

const viewOf = (bson: Uint8Array, start: number, end: number): Buffer =>
  Buffer.from(bson.buffer, bson.byteOffset + start, end - start);

/** The bytes of a top-level member in the same memory; null: there is none of that name (ASCII) and type. */
export function findField(bson: Uint8Array, name: string, wanted: number): Buffer | null {
  const start = findValue(bson, 0, name, wanted);
  if (start === -1) return null;
  return viewOf(bson, start, valueEnd(bson, wanted, start, bson.length));
}

/** Whether a document has a top-level member that is called otherwise than these (ASCII, each of them once at most). */
export function hasOthers(bson: Uint8Array, names: readonly string[]): boolean {
  const limit = bson.length - 1;
  let members = 0;
  for (let at = 4; at < limit; at = valueEnd(bson, byteAt(bson, at), valueStart(bson, at + 1), limit)) {
    // More than there are names: which ones need not be asked.
    if (++members > names.length) return true;
  }
  for (let at = 4; at < limit; at = valueEnd(bson, byteAt(bson, at), valueStart(bson, at + 1), limit)) {
    const end = valueStart(bson, at + 1) - 1;
    if (!names.includes(viewOf(bson, at + 1, end).toString('latin1'))) return true;
  }
  return false;
}

/** The hex digits of a member of the document that begins at `start`, if it is an ObjectId. */
export function readObjectId(bson: Uint8Array, name = '_id', start = 0): string | null {
  const value = findValue(bson, start, name, OBJECT_ID);
  return value === -1 ? null : viewOf(bson, value, value + 12).toString('hex');
}

/** What a packet's key is as binary data (packet-key.ts); the subtype tells it from what others may have stored. */
export const PACKET_KEY = { BYTES: 24, SUBTYPE: 0x80, OWN_BYTES: 12 } as const;
const KEY_START = 5;

/** Where the `_id` of a packet begins in its key; -1: binary data that is no such key. */
export const packetIdAt = (bson: Uint8Array, value: number): number =>
  int32(bson, value) === PACKET_KEY.BYTES && bson[value + 4] === PACKET_KEY.SUBTYPE ? value + KEY_START : -1;

/** The `_id` (hex digits) that is seen of the document that begins at `start`: also of a packet, whose key holds more. */
export function readShownId(bson: Uint8Array, start = 0): string | null {
  const id = readObjectId(bson, '_id', start);
  const key = id === null ? findValue(bson, start, '_id', BINARY) : -1;
  const at = key === -1 ? -1 : packetIdAt(bson, key);
  return at === -1 ? id : viewOf(bson, at, at + PACKET_KEY.OWN_BYTES).toString('hex');
}

/** The ObjectIds (hex digits) of a list among the top-level members; none where there is no such list. */
export const readObjectIds = (bson: Uint8Array, name: string): string[] =>
  Array.from(objectIdsIn(bson, name), (at) => viewOf(bson, at, at + 12).toString('hex'));

/** Whether that list holds this one. */
export function holdsObjectId(bson: Uint8Array, name: string, id: string): boolean {
  const wanted = Buffer.from(id, 'hex');
  for (const at of objectIdsIn(bson, name)) if (isSame(wanted, 0, wanted.length, bson, at)) return true;
  return false;
}

/** Where each of them begins. */
function* objectIdsIn(bson: Uint8Array, name: string): Generator<number> {
  const list = findValue(bson, 0, name, ARRAY);
  const end = list === -1 ? 0 : list + int32(bson, list) - 1;
  for (let at = list + 4; at < end; ) {
    const type = byteAt(bson, at);
    const value = valueStart(bson, at + 1);
    at = valueEnd(bson, type, value, end);
    if (type === OBJECT_ID) yield value;
  }
}

/** A text among the members of the document that begins at `start`; empty where there is none of that name. */
export function readText(bson: Uint8Array, name: string, start = 0): string {
  const value = findValue(bson, start, name, STRING);
  return value === -1 ? '' : viewOf(bson, value + 4, value + 3 + int32(bson, value)).toString();
}

/** The names of the top-level members that are not the same bytes in both documents, or are in one of them only. */
export function differingMembers(before: Buffer, after: Buffer): string[] {
  const [beforeEnd, afterEnd] = [before.length - 1, after.length - 1];
  const differing: string[] = [];
  let [left, right] = [4, 4];
  while (left < beforeEnd && right < afterEnd) {
    const [leftEnd, rightEnd] = [memberEnd(before, left), memberEnd(after, right)];
    if (!isSame(before, left, leftEnd, after, right)) {
      const name = nameAt(before, left);
      if (name !== nameAt(after, right)) break;
      differing.push(name);
    }
    [left, right] = [leftEnd, rightEnd];
  }
  // Members that come or go, or change places.
  const [leftRest, rightRest] = [restOf(before, left), restOf(after, right)];
  for (const [name, member] of leftRest) if (!rightRest.get(name)?.equals(member)) differing.push(name);
  for (const name of rightRest.keys()) if (!leftRest.has(name)) differing.push(name);
  return differing;
}

const memberEnd = (bson: Buffer, start: number): number =>
  valueEnd(bson, byteAt(bson, start), valueStart(bson, start + 1), bson.length - 1);
const nameAt = (bson: Buffer, start: number): string => bson.toString('utf8', start + 1, bson.indexOf(0, start + 1));

/** Whether the bytes from `start` to `end` are those of the other from `at` on. */
function isSame(bson: Uint8Array, start: number, end: number, other: Uint8Array, at: number): boolean {
  for (let offset = 0; offset < end - start; offset++) if (bson[start + offset] !== other[at + offset]) return false;
  return true;
}

function restOf(bson: Buffer, start: number): Map<string, Buffer> {
  const rest = new Map<string, Buffer>();
  for (let at = start; at < bson.length - 1; at = memberEnd(bson, at)) {
    rest.set(nameAt(bson, at), bson.subarray(at, memberEnd(bson, at)));
  }
  return rest;
}

/** The member `cursor` of a reply, in the same memory. */
export function cursorIn(reply: Uint8Array): Buffer {
  const cursor = findField(reply, 'cursor', DOCUMENT);
  if (cursor === null) throw new TypeError('a reply without a cursor');
  return cursor;
}

/** Reads the bytes of the member `cursor` of a reply; the documents are parts of their memory. */
export function readBatch(cursor: Uint8Array): Batch {
  const documents = findField(cursor, 'firstBatch', ARRAY) ?? findField(cursor, 'nextBatch', ARRAY);
  const id = findValue(cursor, 0, 'id', INT64);
  const namespace = findField(cursor, 'ns', STRING);
  if (!documents || id === -1 || !namespace) throw new TypeError('not the cursor of a reply');
  return new ReplyBatch(documents, viewOf(cursor, id, id + 8).readBigInt64LE(), namespace);
}

class ReplyBatch implements Batch {
  readonly memory: Buffer;
  readonly cursorId: bigint;
  readonly #namespace: Buffer;

  constructor(memory: Buffer, cursorId: bigint, namespace: Buffer) {
    this.memory = memory;
    this.cursorId = cursorId;
    this.#namespace = namespace;
  }

  get namespace(): string {
    return this.#namespace.toString('utf8', 4, this.#namespace.length - 1);
  }

  get bytes(): number {
    return this.memory.length;
  }

  starts(): Iterable<number> {
    return startsIn(this.memory);
  }

  get documents(): Buffer[] {
    return Array.from(this.starts(), (start) => documentAt(this.memory, start));
  }
}

function* startsIn(batch: Uint8Array): Generator<number> {
  for (let at = 4; at < batch.length - 1; ) {
    const start = valueStart(batch, at + 1);
    at = valueEnd(batch, DOCUMENT, start, batch.length - 1);
    yield start;
  }
}

/** The document that begins there, in the same memory. */
export const documentAt = (memory: Buffer, start: number): Buffer =>
  memory.subarray(start, start + int32(memory, start));
