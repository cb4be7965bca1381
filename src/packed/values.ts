/** The values of a column that was read: as numbers for a series, and as bytes for the packets. */
import { BSON_TYPES } from '../platform/mongo/bson/reader.js';
import { ByteReader, DamageError, WHOLE_MAX } from './bytes.js';
import { COLUMN_FORMS } from './column.js';
import { readDoubles } from './doubles.js';
import { readIntegers } from './integers.js';
import { KEY_TYPE, KEY_VALUE_BYTES, readKeys, writeKeyValue } from './keys.js';
import { isInt32, isString, KINDS, STREAMS, STRING_FRAME, streamOf, typeOf } from './kinds.js';
import { readTexts, type Texts } from './texts.js';

const { BOOLEAN, DOUBLE, INT32, INT64, NULL, UNDEFINED } = BSON_TYPES;
const OBJECT_BYTES = 12;
const NUMBER_BYTES = 8;
const INT32_BYTES = 4;
/** Numbers, booleans and nothing. */
const IS_PLAIN: ReadonlySet<number> = new Set([KINDS.NUMBER, DOUBLE, INT64, BOOLEAN, NULL, UNDEFINED]);

/** What reads a column besides its bytes. */
export interface ColumnSource {
  /** The name as in BSON, with its NUL. */
  readonly name: Buffer;
  readonly count: number;
  /** Numbers of another column that are near to these. */
  readonly beside: () => Float64Array | null;
  /** The stamps of the packets, for keys. */
  readonly stamps: () => Float64Array | null;
}

/** A column that can be written as members of packets, one after the other. */
export interface Values {
  readonly count: number;
  /** Writes the next value with its type and name; returns the end. Throws a DamageError without space. */
  writeNext(out: Buffer, pos: number): number;
  /** Starts again with the first value. */
  rewind(): void;
}

export function readValues(bytes: Buffer, source: ColumnSource): ColumnValues | KeyValues {
  const reader = new ByteReader(bytes);
  const form = reader.byte();
  if (form === COLUMN_FORMS.keys) return new KeyValues(reader, source);
  if (form !== COLUMN_FORMS.values) throw new DamageError('an unknown form of columns');
  return new ColumnValues(reader, source);
}

function checkSpace(out: Buffer, pos: number, bytes: number): void {
  if (pos + bytes > out.length) throw new DamageError('the packets are longer than they were');
}

function writeName(out: Buffer, pos: number, type: number, name: Buffer): number {
  out[pos] = type;
  for (let i = 0; i < name.length; i++) out[pos + 1 + i] = name[i] as number;
  return pos + 1 + name.length;
}

/** Up to this length, a loop copies faster than Node.js. */
const SHORT_BYTES = 32;

function copyBytes(
  bytes: Buffer,
  { from, to }: { readonly from: number; readonly to: number },
  out: Buffer,
  pos: number,
): number {
  if (to - from > SHORT_BYTES) return pos + bytes.copy(out, pos, from, to);
  for (let i = from; i < to; i++) out[pos + i - from] = bytes[i] as number;
  return pos + to - from;
}

export class KeyValues implements Values {
  readonly count: number;
  readonly ids: Buffer;
  readonly #name: Buffer;
  readonly #object: Buffer;
  #nth = 0;

  constructor(reader: ByteReader, { name, count, stamps }: ColumnSource) {
    this.count = count;
    this.#name = name;
    this.#object = reader.take(OBJECT_BYTES);
    this.ids = readKeys(reader, count, stamps);
    reader.end();
  }

  rewind(): void {
    this.#nth = 0;
  }

  writeNext(out: Buffer, start: number): number {
    checkSpace(out, start, 1 + this.#name.length + KEY_VALUE_BYTES);
    const pos = writeName(out, start, KEY_TYPE, this.#name);
    return writeKeyValue(out, pos, { ids: this.ids, object: this.#object, nth: this.#nth++ });
  }
}

export class ColumnValues implements Values {
  readonly count: number;
  readonly #name: Buffer;
  /** Null if all are of the first kind. */
  readonly #places: Float64Array | null;
  readonly #kinds: Buffer;
  readonly #numbers: Float64Array;
  readonly #numberBytes: Buffer;
  readonly #booleans: Float64Array;
  readonly #texts: readonly (Texts | null)[];
  #nth = 0;
  #number = 0;
  #boolean = 0;
  /** How many texts of each kind were read. */
  readonly #textCounts: Uint32Array;

  constructor(reader: ByteReader, { name, count, beside }: ColumnSource) {
    this.count = count;
    this.#name = name;
    this.#kinds = reader.block();
    const { length } = this.#kinds;
    if (length === 0 && count > 0) throw new DamageError('a column has no kinds');
    this.#places = length > 1 ? readIntegers(reader, count) : null;
    const counts = this.#countKinds();
    const countOf = (stream: number): number =>
      counts.reduce((sum, some, place) => sum + (this.#streamAt(place) === stream ? some : 0), 0);
    const numbers = countOf(STREAMS.numbers);
    this.#numbers = numbers > 0 ? readDoubles(reader, numbers, beside) : new Float64Array(0);
    this.#numberBytes = Buffer.from(this.#numbers.buffer, this.#numbers.byteOffset, this.#numbers.byteLength);
    this.#booleans = readIntegers(reader, countOf(STREAMS.booleans));
    this.#texts = Array.from(counts, (some, place) =>
      this.#streamAt(place) === STREAMS.texts ? readTexts(reader, some) : null,
    );
    this.#textCounts = new Uint32Array(length);
    reader.end();
  }

  /** All values, if each of them is a number. */
  allNumbers(): Float64Array | null {
    return this.#numbers.length === this.count ? this.#numbers : null;
  }

  /** The numbers, booleans as 1 and 0, and NaN for any other value. */
  toNumbers(): Float64Array {
    const all = this.allNumbers();
    if (all !== null) return all;
    let number = 0;
    let boolean = 0;
    return Float64Array.from({ length: this.count }, (_, nth) => {
      const stream = this.#streamAt(this.#placeAt(nth));
      if (stream === STREAMS.numbers) return this.#numbers[number++] as number;
      return stream === STREAMS.booleans ? (this.#booleans[boolean++] as number) : Number.NaN;
    });
  }

  /** The numbers, booleans as 1 and 0, and NaN for null; null if there is any other value. */
  numbersOrNulls(): Float64Array | null {
    return this.#kinds.every((kind) => IS_PLAIN.has(kind)) ? this.toNumbers() : null;
  }

  rewind(): void {
    this.#nth = 0;
    this.#number = 0;
    this.#boolean = 0;
    this.#textCounts.fill(0);
  }

  writeNext(out: Buffer, start: number): number {
    const place = this.#placeAt(this.#nth++);
    const kind = this.#kinds[place] as number;
    const stream = streamOf(kind);
    if (stream === STREAMS.numbers) return this.#writeNumber(out, start, kind);
    checkSpace(out, start, 1 + this.#name.length + 1);
    const pos = writeName(out, start, typeOf(kind), this.#name);
    if (stream === STREAMS.texts) return this.#writeText(out, pos, place);
    if (stream === STREAMS.none) return pos;
    out[pos] = this.#booleans[this.#boolean++] as number;
    return pos + 1;
  }

  #placeAt(nth: number): number {
    return this.#places === null ? 0 : (this.#places[nth] as number);
  }

  #streamAt(place: number): number {
    return streamOf(this.#kinds[place] as number);
  }

  #countKinds(): Uint32Array {
    const counts = new Uint32Array(this.#kinds.length);
    if (this.#places === null) return counts.fill(this.count);
    for (const place of this.#places) {
      if (!(place >= 0 && place < counts.length)) throw new DamageError('a value has no kind');
      counts[place] = (counts[place] as number) + 1;
    }
    return counts;
  }

  #writeNumber(out: Buffer, start: number, kind: number): number {
    const nth = this.#number++;
    const value = this.#numbers[nth] as number;
    checkSpace(out, start, 1 + this.#name.length + INT32_BYTES);
    if (kind === KINDS.NUMBER && isInt32(value)) {
      const pos = writeName(out, start, INT32, this.#name);
      return out.writeInt32LE(value, pos);
    }
    checkSpace(out, start, 1 + this.#name.length + NUMBER_BYTES);
    if (kind === INT64) {
      if (!Number.isInteger(value) || Math.abs(value) >= WHOLE_MAX) throw new DamageError('an integer is not whole');
      const pos = writeName(out, start, INT64, this.#name);
      return out.writeBigInt64LE(BigInt(value), pos);
    }
    const pos = writeName(out, start, DOUBLE, this.#name);
    // As bytes, since one NaN might become another one.
    if (Number.isNaN(value)) this.#numberBytes.copy(out, pos, nth * NUMBER_BYTES, (nth + 1) * NUMBER_BYTES);
    else out.writeDoubleLE(value, pos);
    return pos + NUMBER_BYTES;
  }

  #writeText(out: Buffer, start: number, place: number): number {
    const { bytes, starts, places } = this.#texts[place] as Texts;
    const nth = this.#textCounts[place] as number;
    this.#textCounts[place] = nth + 1;
    const at = places === null ? nth : (places[nth] as number);
    const from = starts[at] as number;
    const to = starts[at + 1] as number;
    const framed = isString(this.#kinds[place] as number);
    const { before, behind } = framed ? STRING_FRAME : { before: 0, behind: 0 };
    checkSpace(out, start, before + to - from + behind);
    if (framed) out.writeInt32LE(to - from + behind, start);
    const pos = copyBytes(bytes, { from, to }, out, start + before);
    if (framed) out[pos] = 0;
    return pos + behind;
  }
}
