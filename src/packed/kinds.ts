/** The kinds of values in a column. Most are types of BSON; numbers have a kind for each way in which they may be stored. */
import { BSON_TYPES, byteAt, int64 } from '../platform/mongo/bson/reader.js';
import { WHOLE_MAX } from './bytes.js';

const { DOUBLE, STRING, UNDEFINED, BOOLEAN, NULL, INT32, INT64 } = BSON_TYPES;

/** Kinds that are no types. */
export const KINDS = {
  /** As the service stores numbers: an Int32 if it is one, otherwise a double. */
  NUMBER: 0x20,
  /** An Int64 that is no exact double, as bytes. */
  LARGE_INT64: 0x21,
  /** A boolean of another byte than 0 and 1. */
  ODD_BOOLEAN: 0x22,
} as const;

/** Where the values of a kind are. */
export const STREAMS = { none: 0, numbers: 1, booleans: 2, texts: 3 } as const;

/** The stream of each kind. A table, since it is asked for every value. */
const STREAM_OF = new Uint8Array(2 ** 8).fill(STREAMS.texts);
for (const kind of [NULL, UNDEFINED, 0x7f, 0xff]) STREAM_OF[kind] = STREAMS.none;
for (const kind of [KINDS.NUMBER, DOUBLE, INT64]) STREAM_OF[kind] = STREAMS.numbers;
STREAM_OF[BOOLEAN] = STREAMS.booleans;

export const streamOf = (kind: number): number => STREAM_OF[kind] as number;

/** Whether the service stores this number as an Int32. */
export const isInt32 = (value: number): boolean => (value | 0) === value && !Object.is(value, -0);

const double = new DataView(new ArrayBuffer(8));

export function kindOf(row: Buffer, type: number, start: number): number {
  if (type === INT32) return KINDS.NUMBER;
  if (type === DOUBLE) {
    for (let i = 0; i < 8; i++) double.setUint8(i, byteAt(row, start + i));
    return isInt32(double.getFloat64(0, true)) ? DOUBLE : KINDS.NUMBER;
  }
  if (type === INT64) return Math.abs(int64(row, start)) < WHOLE_MAX ? INT64 : KINDS.LARGE_INT64;
  if (type === BOOLEAN) return byteAt(row, start) > 1 ? KINDS.ODD_BOOLEAN : BOOLEAN;
  return type;
}

/** The type of BSON; that of a number depends on its value. */
export function typeOf(kind: number): number {
  if (kind === KINDS.LARGE_INT64) return INT64;
  return kind === KINDS.ODD_BOOLEAN ? BOOLEAN : kind;
}

/** Bytes of a string that its length repeats: the length itself before it, and a NUL behind it. */
export const STRING_FRAME = { before: 4, behind: 1 } as const;
export const isString = (kind: number): boolean => kind === STRING;
