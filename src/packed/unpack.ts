/** Reads a bucket: all of its packets, single columns, statistics, or whether it has a packet. */
import { crc32 } from 'node:zlib';
import { DamageError, WHOLE_MAX } from './bytes.js';
import { decompress } from './compression.js';
import { type Bucket, type Head, readHead, shapesBytesOf } from './head.js';
import { findKey } from './keys.js';
import type { Shape, Shapes } from './shapes.js';
import { ColumnValues, KeyValues, readValues, type Values } from './values.js';

/** A bucket that does not say any more what was packed into it. */
export class DamagedBucketError extends Error {
  constructor({ fromMs, toMs }: Pick<Bucket, 'fromMs' | 'toMs'>, cause: unknown) {
    super(`the packed history from ${toText(fromMs)} to ${toText(toMs)} is damaged: ${(cause as Error).message}`, {
      cause,
    });
  }
}

function toText(timeMs: number): string {
  const time = new Date(timeMs);
  return Number.isNaN(time.getTime()) ? String(timeMs) : time.toISOString();
}

/** The values of one field. */
export interface FieldValues {
  /** The row of each value, ascending. */
  readonly rows: Uint32Array;
  readonly values: ColumnValues | KeyValues;
}

/** Packets behind each other, and where each begins. */
export interface UnpackedRows {
  readonly memory: Buffer;
  readonly starts: Uint32Array;
}

/** All packets, byte for byte as they were packed, in their order. */
export function unpack(bucket: Bucket): Buffer[] {
  const { memory, starts } = new BucketReader(bucket).readRows();
  return Array.from(starts, (start, nth) => memory.subarray(start, starts[nth + 1] ?? memory.length));
}

/** Throws a DamagedBucketError for a bucket that is damaged, from whatever it reads of it. */
export class BucketReader {
  readonly head: Head;
  readonly #bucket: Bucket;
  readonly #fields = new Map<string, FieldValues>();
  #shapes: Shapes | null = null;
  /** For each column, which shapes have it. */
  #shapesWith: readonly (readonly number[])[] | null = null;
  /** The rows of fields that every packet has. */
  #all: Uint32Array | null = null;

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
    this.head = this.#guard(() => readHead(bucket));
  }

  /** All packets in memory of their own; with `names`, only these of their fields, which are all that is decoded. */
  readRows(names: ReadonlySet<string> | null = null): UnpackedRows {
    return this.#guard(() => this.#unpack(names));
  }

  /** Decodes this field alone, and those that it depends on: `_ts` needs `time`, and `_id` needs both. Null without the field. */
  readField(name: string): FieldValues | null {
    return this.#guard(() => (this.head.columns.some((column) => column.name === name) ? this.#fieldOf(name) : null));
  }

  /** The row of the packet with this `_id` of its own; -1 if there is none. */
  findPacket(id: Buffer): number {
    return this.#guard(() => {
      const field = this.readField('_id');
      if (!(field?.values instanceof KeyValues)) return -1;
      const nth = findKey(field.values.ids, id);
      return nth === -1 ? -1 : (field.rows[nth] as number);
    });
  }

  #guard<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      throw error instanceof DamagedBucketError ? error : new DamagedBucketError(this.#bucket, error);
    }
  }

  #shapesOf(): Shapes {
    this.#shapes ??= this.head.readShapes();
    return this.#shapes;
  }

  #fieldOf(name: string): FieldValues {
    const known = this.#fields.get(name);
    if (known !== undefined) return known;
    const place = this.head.columns.findIndex((column) => column.name === name);
    const rows = this.#rowsOf(place);
    const values = readValues(this.#bytesOf(place), {
      name: Buffer.from(`${name}\0`),
      count: rows.length,
      beside: () => (name === '_ts' ? (this.#wholesOf('time')?.map((time) => time * STAMPS_PER_MS) ?? null) : null),
      stamps: () => (name === '_id' ? this.#wholesOf('_ts') : null),
    });
    const field = { rows, values };
    this.#fields.set(name, field);
    return field;
  }

  #rowsOf(place: number): Uint32Array {
    const { shapes, places } = this.#shapesOf();
    this.#shapesWith ??= findShapesWith(shapes, this.head.columns.length);
    const found = this.#shapesWith[place] as readonly number[];
    if (found.length === shapes.length) return this.#allRows();
    const has = new Uint8Array(shapes.length);
    for (const nth of found) has[nth] = 1;
    const rows: number[] = [];
    for (let row = 0; row < places.length; row++) if (has[places[row] as number] === 1) rows.push(row);
    return Uint32Array.from(rows);
  }

  #allRows(): Uint32Array {
    if (this.#all === null) {
      this.#all = new Uint32Array(this.head.rows);
      for (let row = 0; row < this.#all.length; row++) this.#all[row] = row;
    }
    return this.#all;
  }

  #bytesOf(place: number): Buffer {
    const { name, bytes, crc } = this.head.columns[place] as Head['columns'][number];
    const packed = this.#bucket.columns.get(name);
    if (packed === undefined) throw new DamageError(`the column of ${JSON.stringify(name)} is missing`);
    if (packed.length !== bytes || crc32(packed) !== crc) {
      throw new DamageError(`the checksum of the column of ${JSON.stringify(name)} differs`);
    }
    return decompress(packed, shapesBytesOf(this.head.bytes));
  }

  #wholesOf(name: string): Float64Array | null {
    if (!this.head.columns.some((column) => column.name === name)) return null;
    const { values } = this.#fieldOf(name);
    const numbers = values instanceof ColumnValues ? values.allNumbers() : null;
    return numbers?.every((number) => Number.isInteger(number) && Math.abs(number) < WHOLE_MAX) ? numbers : null;
  }

  #unpack(names: ReadonlySet<string> | null): UnpackedRows {
    const isWanted = this.head.columns.map(({ name }) => names === null || names.has(name));
    const { places, ...all } = this.#shapesOf();
    const shapes = names === null ? all.shapes : all.shapes.map((shape) => shape.filter((place) => isWanted[place]));
    const columns = this.head.columns.map(({ name }, place) => (isWanted[place] ? this.#fieldOf(name).values : null));
    for (const column of columns) column?.rewind();
    const memory = Buffer.allocUnsafeSlow(this.head.bytes);
    const starts = new Uint32Array(places.length);
    let pos = 0;
    for (let row = 0; row < places.length; row++) {
      starts[row] = pos;
      pos = writeRow(memory, pos, { shape: shapes[places[row] as number] as Shape, columns });
    }
    if (names !== null) return { memory: memory.subarray(0, pos), starts };
    if (pos !== memory.length) throw new DamageError('the packets are shorter than they were');
    return { memory, starts };
  }
}

const STAMPS_PER_MS = 1_000;

/** Looks at each shape once: to look for each column in each shape takes long where both are many. */
function findShapesWith(shapes: readonly Shape[], columns: number): number[][] {
  const found = Array.from({ length: columns }, (): number[] => []);
  for (const [nth, shape] of shapes.entries()) {
    for (const place of shape) found[place]?.push(nth);
  }
  return found;
}

function writeRow(
  out: Buffer,
  start: number,
  { shape, columns }: { readonly shape: Shape; readonly columns: readonly (Values | null)[] },
): number {
  let pos = start + 4;
  for (let i = 0; i < shape.length; i++) pos = (columns[shape[i] as number] as Values).writeNext(out, pos);
  if (pos >= out.length) throw new DamageError('the packets are longer than they were');
  out[pos] = 0;
  out.writeInt32LE(pos + 1 - start, start);
  return pos + 1;
}
