/** Reads numbers of all types from BSON bytes. */
import { BSON_TYPES, findValue, int32, int64 } from './reader.js';

const { DOUBLE, INT32, INT64 } = BSON_TYPES;
const double = new Float64Array(1);
const doubleHalves = new Int32Array(double.buffer);

/** The number at an offset; NaN for a type that is not a number. */
export function numberAt(memory: Uint8Array, type: number, pos: number): number {
  if (type === INT32) return int32(memory, pos);
  if (type === INT64) return int64(memory, pos);
  if (type !== DOUBLE) return Number.NaN;
  doubleHalves[0] = int32(memory, pos);
  doubleHalves[1] = int32(memory, pos + 4);
  return double[0] as number;
}

/** A number member of the document that begins at `start`; NaN when there is none of that name (ASCII). */
export function readNumber(memory: Uint8Array, start: number, name: string): number {
  for (const type of [DOUBLE, INT64, INT32]) {
    const pos = findValue(memory, start, name, type);
    if (pos !== -1) return numberAt(memory, type, pos);
  }
  return Number.NaN;
}
