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

export function readShapes(reader: ByteReader, rows: number, columns: number): Shapes {
  const count = reader.varint(rows);
  const shapes: Shape[] = [];
  for (let i = 0; i < count; i++) {
    const shape = Array.from(readIntegers(reader, reader.varint(columns)));
    if (shape.some((column) => !(column >= 0 && column < columns))) throw new DamageError('a field has no column');
    if (new Set(shape).size < shape.length) throw new DamageError('a packet has a field twice');
    shapes.push(shape);
  }
  const places = readIntegers(reader, rows);
  for (const place of places) if (!(place >= 0 && place < count)) throw new DamageError('a packet has no shape');
  reader.end();
  return { shapes, places };
}
