/** Collects the values of one field, and writes them as a column: their kinds, then numbers, booleans and texts, each as a stream. */
import { BSON_TYPES, int32, int64 } from '../platform/mongo/bson/reader.js';
import { ByteWriter } from './bytes.js';
import { compress } from './compression.js';
import { writeDoubles } from './doubles.js';
import { writeIntegers } from './integers.js';
import { isString, kindOf, STREAMS, STRING_FRAME, streamOf } from './kinds.js';
import type { Member } from './members.js';
import { writeTexts } from './texts.js';

const { INT32, INT64 } = BSON_TYPES;
const FIRST_NUMBERS = 64;
const DOUBLE_BYTES = 8;

/** Columns begin with the way in which they are written. */
export const COLUMN_FORMS = { values: 0, keys: 1 } as const;

export class Column {
  readonly name: Buffer;
  /** The row of each value. */
  readonly rows: number[] = [];
  readonly #kinds: number[] = [];
  #numbers = Buffer.alloc(FIRST_NUMBERS * DOUBLE_BYTES);
  #numberCount = 0;
  readonly #booleans: number[] = [];
  readonly #texts = new Map<number, Buffer[]>();

  constructor(name: Buffer) {
    this.name = name;
  }

  /** Adds the value of the next row that has the field. */
  add(index: number, row: Buffer, { type, start, end }: Member): void {
    const kind = kindOf(row, type, start);
    this.rows.push(index);
    this.#kinds.push(kind);
    const stream = streamOf(kind);
    if (stream === STREAMS.numbers) this.#addNumber(row, type, start);
    else if (stream === STREAMS.booleans) this.#booleans.push(row[start] as number);
    else if (stream === STREAMS.texts) this.#addText(kind, row.subarray(start, end));
  }

  /** All values, if each of them is a number. */
  allNumbers(): Float64Array | null {
    return this.#numberCount === this.#kinds.length ? this.#toNumbers() : null;
  }

  /** The bytes of a text, in the order of the rows that have one of this kind. */
  textsOf(kind: number): readonly Buffer[] {
    return this.#texts.get(kind) ?? [];
  }

  /** Calls back for each number, booleans as 1 and 0, and for each other value but null with NaN. */
  forEach(take: (row: number, number: number) => void): void {
    const numbers = this.#toNumbers();
    let number = 0;
    let boolean = 0;
    for (const [nth, row] of this.rows.entries()) {
      const stream = streamOf(this.#kinds[nth] as number);
      if (stream === STREAMS.numbers) take(row, numbers[number++] as number);
      else if (stream === STREAMS.booleans) take(row, this.#booleans[boolean++] as number);
      else if (stream === STREAMS.texts) take(row, Number.NaN);
    }
  }

  /** `beside` are numbers near to those of this column. */
  finish(beside: Float64Array | null): Buffer {
    const out = new ByteWriter();
    out.byte(COLUMN_FORMS.values);
    const kinds = [...new Set(this.#kinds)];
    out.block(Buffer.from(kinds));
    if (kinds.length > 1) {
      const places = new Map(kinds.map((kind, place) => [kind, place]));
      writeIntegers(
        out,
        Float64Array.from(this.#kinds, (kind) => places.get(kind) as number),
      );
    }
    if (this.#numberCount > 0) writeDoubles(out, this.#toNumbers(), beside);
    if (this.#booleans.length > 0) writeIntegers(out, Float64Array.from(this.#booleans));
    for (const kind of kinds) if (streamOf(kind) === STREAMS.texts) writeTexts(out, this.textsOf(kind));
    return compress(out.finish());
  }

  #toNumbers(): Float64Array {
    // A copy, since it must be aligned.
    const values = new Float64Array(this.#numberCount);
    this.#numbers.copy(new Uint8Array(values.buffer), 0, 0, values.byteLength);
    return values;
  }

  #addNumber(row: Buffer, type: number, start: number): void {
    const pos = this.#numberCount++ * DOUBLE_BYTES;
    if (pos === this.#numbers.length) this.#numbers = Buffer.concat([this.#numbers, Buffer.alloc(pos)]);
    if (type === INT32) this.#numbers.writeDoubleLE(int32(row, start), pos);
    else if (type === INT64) this.#numbers.writeDoubleLE(int64(row, start), pos);
    // The bytes of a double: as a number, one NaN might become another one.
    else row.copy(this.#numbers, pos, start, start + DOUBLE_BYTES);
  }

  #addText(kind: number, value: Buffer): void {
    const text = isString(kind) ? value.subarray(STRING_FRAME.before, value.length - STRING_FRAME.behind) : value;
    const texts = this.#texts.get(kind);
    if (texts === undefined) this.#texts.set(kind, [text]);
    else texts.push(text);
  }
}
