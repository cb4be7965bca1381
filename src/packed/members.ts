/** Finds the members of a stored packet: any type that BSON has, since nothing else knows what was stored by hand. */
import { BSON_TYPES, byteAt, int32 } from '../platform/mongo/bson/reader.js';

const { BINARY, STRING } = BSON_TYPES;
const REGEX = 0x0b;
const REFERENCE = 0x0c;
/** Sizes of values by type; those of `WITH_LENGTH` include a length. A table, since it is asked for every value; -1 for other types. */
const SIZES = new Int8Array(2 ** 8).fill(-1);
for (const [type, size] of [
  [BSON_TYPES.DOUBLE, 8],
  [BSON_TYPES.UNDEFINED, 0],
  [BSON_TYPES.OBJECT_ID, 12],
  [BSON_TYPES.BOOLEAN, 1],
  [BSON_TYPES.DATE, 8],
  [BSON_TYPES.NULL, 0],
  [BSON_TYPES.INT32, 4],
  // A timestamp, and a decimal of 128 bits.
  [0x11, 8],
  [BSON_TYPES.INT64, 8],
  [0x13, 16],
  // The least and the greatest key.
  [0xff, 0],
  [0x7f, 0],
] as readonly (readonly [number, number])[]) {
  SIZES[type] = size;
}
/** Strings, documents, lists, code, symbols and code with a scope: what their length does not count. */
const WITH_LENGTH = new Map([
  [BSON_TYPES.STRING, 4],
  [BSON_TYPES.DOCUMENT, 0],
  [BSON_TYPES.ARRAY, 0],
  [0x0d, 4],
  [0x0e, 4],
  [0x0f, 0],
] as readonly (readonly [number, number])[]);

/** A member of a document: offsets of its parts. */
export interface Member {
  readonly type: number;
  readonly nameStart: number;
  /** The end of the name, before its NUL. */
  readonly nameEnd: number;
  readonly start: number;
  readonly end: number;
}

/** The members of a document in their order; null if it is not well-formed. */
export function membersOf(row: Buffer): Member[] | null {
  const limit = row.length - 1;
  if (limit < 4 || int32(row, 0) !== row.length || row[limit] !== 0) return null;
  const members: Member[] = [];
  for (let pos = 4; pos < limit; ) {
    const type = byteAt(row, pos);
    let nameEnd = pos + 1;
    while (nameEnd < limit && row[nameEnd] !== 0) nameEnd++;
    const end = nameEnd < limit ? endOf(row, type, nameEnd + 1) : -1;
    if (end === -1 || end > limit) return null;
    if (type === STRING && row[end - 1] !== 0) return null;
    members.push({ type, nameStart: pos + 1, nameEnd, start: nameEnd + 1, end });
    pos = end;
  }
  return members;
}

/** The end of a value; -1 for an unknown type or an impossible length. */
function endOf(row: Buffer, type: number, start: number): number {
  const size = SIZES[type] as number;
  if (size !== -1) return start + size;
  if (type === REGEX) return row.indexOf(0, row.indexOf(0, start) + 1) + 1;
  if (start + 4 > row.length) return -1;
  const length = int32(row, start);
  if (length < 0) return -1;
  if (type === BINARY) return start + 5 + length;
  if (type === REFERENCE) return start + 4 + length + 12;
  const uncounted = WITH_LENGTH.get(type);
  return uncounted === undefined || length + uncounted < 5 ? -1 : start + uncounted + length;
}
