/** The fields of each packet in their order. Most packets of an object have the same ones: each different shape is kept once. */
import { type ByteReader, ByteWriter, DamageError } from './bytes.js';
import { readIntegers, writeIntegers } from './integers.js';

/** The columns of a packet, in the order of its fields. */
export type Shape = readonly number[];

/** The shape of each row, as a place in the list of shapes. */
export interface Shapes {
  readonly shapes: readonly Shape[];
  readonly places: Float64Array;
}

export class ShapeCollector {
  readonly #places = new Map<string, number>();
  readonly #shapes: Shape[] = [];
  readonly #rows: number[] = [];

  add(shape: Shape): void {
    const key = String.fromCharCode(...shape);
    let place = this.#places.get(key);
    if (place === undefined) {
      place = this.#shapes.push(shape) - 1;
      this.#places.set(key, place);
    }
    this.#rows.push(place);
  }

  finish(): Buffer {
    const out = new ByteWriter();
    out.varint(this.#shapes.length);
    for (const shape of this.#shapes) {
      out.varint(shape.length);
      writeIntegers(out, Float64Array.from(shape));
    }
    writeIntegers(out, Float64Array.from(this.#rows));
    return out.finish();
  }
}

/** A type and the end of a name: what a field takes at least. */
const FIELD_BYTES = 2;

export interface ShapeBounds {
  readonly rows: number;
  readonly columns: number;
  /** The size of the unpacked packets, which bounds their fields. */
  readonly bytes: number;
}

export function readShapes(reader: ByteReader, { rows, columns, bytes }: ShapeBounds): Shapes {
  const most = bytes / FIELD_BYTES;
  const count = reader.varint(rows);
  let fields = 0;
  const shapes: Shape[] = [];
  for (let i = 0; i < count; i++) {
    const length = reader.varint(columns);
    fields += length;
    if (fields > most) throw new DamageError('the packets have more fields than bytes');
    const shape = Array.from(readIntegers(reader, length));
    if (shape.some((column) => !(column >= 0 && column < columns))) throw new DamageError('a field has no column');
    if (new Set(shape).size < shape.length) throw new DamageError('a packet has a field twice');
    shapes.push(shape);
  }
  const places = readIntegers(reader, rows);
  fields = 0;
  for (const place of places) {
    if (!(place >= 0 && place < count)) throw new DamageError('a packet has no shape');
    fields += (shapes[place] as Shape).length;
  }
  if (fields > most) throw new DamageError('the packets have more fields than bytes');
  reader.end();
  return { shapes, places };
}
