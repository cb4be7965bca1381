/**
 * Packs blocks of whole numbers from 0 on into as many bits as most of them need. The few larger ones are exceptions: their upper
 * bits follow the block, so that one gap in a recording does not widen all of its neighbors.
 */
import { type ByteReader, type ByteWriter, DamageError, WHOLE_MAX } from './bytes.js';

export const BLOCK = 128;
/** Of 2^53. */
const WIDTH_MAX = 54;
/** How many bits fit into the 32 of an operator beside a started byte. */
const PART_BITS = 24;
const PART = 2 ** PART_BITS;

export interface BlockPlan {
  readonly width: number;
  readonly bits: number;
}

const counts = new Uint8Array(WIDTH_MAX + 1);

/** The width that takes the fewest bits in total. */
export function planBlock(values: Float64Array): BlockPlan {
  counts.fill(0);
  let widest = 0;
  for (let i = 0; i < values.length; i++) {
    const width = widthOf(values[i] as number);
    counts[width] = (counts[width] as number) + 1;
    if (width > widest) widest = width;
  }
  let best = { width: widest, bits: values.length * widest };
  for (let width = widest - 1; width >= 0; width--) {
    // The count of the exceptions, and for each of them its place and its upper bits.
    let bits = values.length * width + 8;
    for (let wide = width + 1; wide <= widest; wide++) {
      bits += (counts[wide] as number) * 8 * (1 + Math.ceil((wide - width) / 7));
    }
    if (bits < best.bits) best = { width, bits };
    // Nearly all are exceptions: fewer bits only make more of them.
    else if (bits > 2 * best.bits) break;
  }
  return best;
}

const widthOf = (value: number): number =>
  value < 2 ** 32 ? 32 - Math.clz32(value) : 64 - Math.clz32(Math.floor(value / 2 ** 32));

const HAS_EXCEPTIONS = 0x40;
/** The bit of the first byte that is left to the caller. */
export const BLOCK_FLAG = 0x80;

/** Writes the width with a flag of the caller, what `between` writes, the low bits, and the exceptions. */
export function writeBlock(
  out: ByteWriter,
  values: Float64Array,
  { width, flag, between }: { readonly width: number; readonly flag: number; readonly between?: () => void },
): void {
  const limit = 2 ** width;
  const exceptions: number[] = [];
  for (let i = 0; i < values.length; i++) if ((values[i] as number) >= limit) exceptions.push(i);
  out.byte(width | (exceptions.length > 0 ? HAS_EXCEPTIONS : 0) | flag);
  between?.();
  writeBits(out, values, width);
  if (exceptions.length === 0) return;
  out.byte(exceptions.length);
  for (const index of exceptions) {
    out.byte(index);
    out.varint(Math.floor((values[index] as number) / limit));
  }
}

/** Reads a block into `values`; `between` gets the flag. */
export function readBlock(reader: ByteReader, values: Float64Array, between: (flag: number) => void): void {
  const first = reader.byte();
  const width = first & 0x3f;
  if (width > WIDTH_MAX) throw new DamageError('a block is too wide');
  between(first & BLOCK_FLAG);
  readBits(reader, values, width);
  if ((first & HAS_EXCEPTIONS) === 0) return;
  const limit = 2 ** width;
  for (let left = reader.byte(); left > 0; left--) {
    const index = reader.byte();
    if (index >= values.length) throw new DamageError('an exception is outside its block');
    values[index] = (values[index] as number) + reader.varint(2 * WHOLE_MAX) * limit;
  }
}

function writeBits(out: ByteWriter, values: Float64Array, width: number): void {
  let factor = 1;
  for (let left = width; left > 0; left -= PART_BITS) {
    const part = Math.min(left, PART_BITS);
    writePart(out.space(Math.ceil((values.length * part) / 8)), values, part, factor);
    factor *= PART;
  }
}

/** Writes `part` bits of each number, those from `factor` on. */
function writePart(bytes: Buffer, values: Float64Array, part: number, factor: number): void {
  const mask = 2 ** part - 1;
  let pending = 0;
  let bits = 0;
  let pos = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    // The operator takes the number modulo 2^32.
    pending |= ((factor === 1 ? value : Math.floor(value / factor)) & mask) << bits;
    for (bits += part; bits >= 8; bits -= 8) {
      bytes[pos++] = pending;
      pending >>>= 8;
    }
  }
  if (bits > 0) bytes[pos] = pending;
}

function readBits(reader: ByteReader, values: Float64Array, width: number): void {
  if (width === 0) values.fill(0);
  let factor = 1;
  for (let left = width; left > 0; left -= PART_BITS) {
    const part = Math.min(left, PART_BITS);
    readPart(reader.take(Math.ceil((values.length * part) / 8)), values, part, factor);
    factor *= PART;
  }
}

function readPart(bytes: Buffer, values: Float64Array, part: number, factor: number): void {
  const mask = 2 ** part - 1;
  let pending = 0;
  let bits = 0;
  let pos = 0;
  for (let i = 0; i < values.length; i++) {
    for (; bits < part; bits += 8) pending |= (bytes[pos++] as number) << bits;
    const value = pending & mask;
    values[i] = factor === 1 ? value : (values[i] as number) + value * factor;
    pending >>>= part;
    bits -= part;
  }
}
