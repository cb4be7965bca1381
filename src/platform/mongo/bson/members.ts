/** Walks the members of BSON documents without building objects. */
import { BSON_TYPES, byteAt, valueEnd } from './reader.js';

/** A member: its type, and the offsets of its name and its value. */
export type OnMember = (type: number, nameStart: number, nameEnd: number, valueStart: number) => void;

/** Calls `onMember` for each member of the document or array that begins at `start`, in the stored order. */
export function eachMember(bson: Uint8Array, start: number, onMember: OnMember): void {
  const limit = valueEnd(bson, BSON_TYPES.DOCUMENT, start, bson.length) - 1;
  for (let pos = start + 4; pos < limit; ) {
    const type = byteAt(bson, pos++);
    const nameStart = pos;
    while (byteAt(bson, pos) !== 0) pos++;
    const valueStart = pos + 1;
    const end = valueEnd(bson, type, valueStart, limit);
    onMember(type, nameStart, pos, valueStart);
    pos = end;
  }
}

/** Whether the bytes from `start` to `end` equal `bytes`. */
export function isSameBytes(bson: Uint8Array, start: number, end: number, bytes: Uint8Array): boolean {
  if (end - start !== bytes.length) return false;
  for (let i = 0; i < bytes.length; i++) if (bson[start + i] !== bytes[i]) return false;
  return true;
}

export const nameAt = (bson: Uint8Array, start: number, end: number): string =>
  Buffer.from(bson.buffer, bson.byteOffset + start, end - start).toString();
