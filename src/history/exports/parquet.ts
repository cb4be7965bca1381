/** Apache Parquet with a GeoParquet column: one typed column for each field, in row groups of bounded memory. */
import { gzipSync } from 'node:zlib';
import { ByteWriter, type ColumnSource, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import { tooLarge } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import type { DataType } from '../../core/model.js';
import type { PacketBatch } from '../../packets/packet-stream.js';
import { POSITION_FIELDS, PositionReader } from '../../packets/position.js';
import { clock } from '../../platform/clock.js';
import { JsonWriter, writeValue } from '../../platform/mongo/bson/json-writer.js';
import { numberAt } from '../../platform/mongo/bson/numbers.js';
import { BSON_TYPES, int32, valueEnd } from '../../platform/mongo/bson/reader.js';
import { appendMembers, Cells, columnsOf, MORE } from './columns.js';
import { appendText, type Encoder, type EncoderOptions } from './encoder.js';
import { toReason } from './ndjson.js';
import { toPoint } from './wkb.js';

const { DOUBLE, STRING, BINARY, UNDEFINED, OBJECT_ID, BOOLEAN, NULL, INT32, INT64 } = BSON_TYPES;
/** The column of positions. It goes before a field of that name, which is in the last column. */
const GEOMETRY = 'geometry';
/** How many packets a row group has at least room for, however many columns there are. */
const MIN_ROWS = 100;
const MAX_TIME_MS = 8.64e15;

type Kind = 'text' | 'number' | 'boolean' | 'milliseconds' | 'microseconds' | 'json';

const FIXED_KINDS: Readonly<Record<string, Kind>> = {
  _id: 'text',
  _oid: 'text',
  _gid: 'text',
  id: 'text',
  online: 'boolean',
  time: 'milliseconds',
  deviceTime: 'milliseconds',
  _ts: 'microseconds',
};
const DECLARED_KINDS: Readonly<Partial<Record<DataType, Kind>>> = {
  number: 'number',
  boolean: 'boolean',
  string: 'text',
};
const KIND_OF_TYPE: Readonly<Record<number, Kind>> = {
  [DOUBLE]: 'number',
  [INT32]: 'number',
  [INT64]: 'number',
  [BOOLEAN]: 'boolean',
  [STRING]: 'text',
};
const ELEMENTS: Readonly<Record<Kind, Omit<SchemaElement, 'name' | 'repetition_type'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  number: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
  milliseconds: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  microseconds: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  json: { type: 'BYTE_ARRAY', logical_type: { type: 'JSON' } },
};

const toElement = (name: string, kind: Kind): SchemaElement => ({
  name,
  repetition_type: 'OPTIONAL',
  ...ELEMENTS[kind],
});

export function createParquetEncoder({ only, declared }: Pick<EncoderOptions, 'only' | 'declared'>): Encoder {
  const isGeometry = (name: string): boolean => name === GEOMETRY;
  const hasGeometry = only === null || only.some(isGeometry);
  const fields = only?.filter((name) => !isGeometry(name)) ?? null;
  let table: Table | undefined;
  return {
    fields: fields !== null && hasGeometry ? [...fields, ...POSITION_FIELDS] : fields,
    begin(writer, first) {
      const names = columnsOf(fields, declared.keys(), first).filter((name) => !isGeometry(name));
      const cells = new Cells(names, only === null);
      const kinds = kindsOf(cells, declared, first);
      table = new Table(cells, kinds, hasGeometry);
      table.take(writer);
    },
    packet: (_writer, memory, start) => table?.add(memory, start),
    group: {
      isFull: () => table?.isFull() ?? false,
      write: async (writer) => table?.writeGroup(writer),
    },
    async end(writer, error) {
      // Without its end, the file is none: programs refuse it.
      if (error !== null) return appendText(writer, `\n#incomplete: ${toReason(error)}\n`);
      await table?.writeGroup(writer);
      table?.finish(writer);
    },
  };
}

/** What each column holds: what is known of its name, or else what the first packets have. */
function kindsOf(cells: Cells, declared: ReadonlyMap<string, DataType>, first: PacketBatch | null): Kind[] {
  const found = cells.names.map((): Kind | null => null);
  for (const start of first?.starts ?? []) {
    cells.read(first?.memory as Uint8Array, start);
    cells.types.forEach((type, column) => {
      if (type === 0 || type === NULL || type === UNDEFINED) return;
      const kind = KIND_OF_TYPE[type] ?? 'json';
      found[column] = found[column] === null || found[column] === kind ? kind : 'json';
    });
  }
  return cells.names.map((name, column) => {
    const fixed = Object.hasOwn(FIXED_KINDS, name) ? FIXED_KINDS[name] : undefined;
    const type = declared.get(name);
    return fixed ?? (type && (DECLARED_KINDS[type] ?? 'json')) ?? found[column] ?? 'json';
  });
}

type Value = string | number | boolean | bigint | Uint8Array;

/** The rows that are not written yet, column by column, and the file. */
class Table {
  readonly #cells: Cells;
  readonly #kinds: readonly Kind[];
  /** A row without a value is a hole: a list of numbers takes 8 bytes for each. */
  readonly #columns: Value[][];
  readonly #more: Value[] = [];
  readonly #points: Value[] | null;
  readonly #maxRows: number;
  #rows = 0;
  #bytes = 0;
  #hasHeights = false;
  readonly #position = new PositionReader();
  readonly #scratch = new JsonWriter(4_096);
  readonly #bytesOut = new ByteWriter(64 * 1_024);
  readonly #parquet: ParquetWriter;

  constructor(cells: Cells, kinds: readonly Kind[], hasGeometry: boolean) {
    this.#cells = cells;
    this.#kinds = kinds;
    this.#columns = cells.names.map(() => []);
    this.#points = hasGeometry ? [] : null;
    const elements = cells.names.map((name, column) => toElement(name, kinds[column] as Kind));
    if (hasGeometry) elements.push({ name: GEOMETRY, type: 'BYTE_ARRAY', repetition_type: 'OPTIONAL' });
    elements.push(toElement(MORE, 'json'));
    this.#maxRows = Math.max(
      MIN_ROWS,
      Math.min(LIMITS.exportGroupPackets, Math.floor(LIMITS.exportGroupCells / elements.length)),
    );
    this.#parquet = new ParquetWriter({
      writer: this.#bytesOut,
      schema: [{ name: 'packets', num_children: elements.length }, ...elements],
      codec: 'GZIP',
      compressors: { GZIP: (bytes) => gzipSync(bytes, { level: 1 }) },
      createdBy: 'Vigil',
    });
  }

  isFull(): boolean {
    return this.#rows >= this.#maxRows || this.#bytes >= LIMITS.exportGroupBytes;
  }

  add(memory: Uint8Array, start: number): void {
    this.#cells.read(memory, start);
    const row = this.#rows++;
    this.#bytes += int32(memory, start);
    const { types, starts, names, more } = this.#cells;
    let others = '';
    for (let column = 0; column < types.length; column++) {
      const type = types[column] as number;
      if (type === 0 || type === NULL || type === UNDEFINED) continue;
      const value = this.#valueAt(this.#kinds[column] as Kind, memory, type, starts[column] as number);
      if (value !== undefined) (this.#columns[column] as Value[])[row] = value;
      else others += `,${JSON.stringify(names[column])}:${this.#toJson(memory, type, starts[column] as number)}`;
    }
    if (more.length > 0 || others !== '') this.#more[row] = this.#toMore(memory, others);
    if (this.#points !== null && this.#position.read(memory, start)) {
      this.#hasHeights ||= !Number.isNaN(this.#position.height);
      this.#points[row] = toPoint(this.#position);
    }
  }

  /** The value for a column; undefined if it is of another type. */
  #valueAt(kind: Kind, memory: Uint8Array, type: number, offset: number): Value | undefined {
    if (kind === 'json') return this.#toJson(memory, type, offset);
    if (kind === 'text') {
      if (type === STRING) return toBuffer(memory).toString('utf8', offset + 4, offset + 3 + int32(memory, offset));
      return type === OBJECT_ID || type === BINARY
        ? this.#toJson(memory, type, offset).toString('latin1', 1, 25)
        : undefined;
    }
    if (kind === 'boolean') return type === BOOLEAN ? memory[offset] === 1 : undefined;
    const value = numberAt(memory, type, offset);
    if (kind === 'number') return KIND_OF_TYPE[type] === 'number' ? value : undefined;
    return Math.abs(value) <= MAX_TIME_MS ? BigInt(Math.trunc(value)) : undefined;
  }

  #toJson(memory: Uint8Array, type: number, offset: number): Buffer {
    const bytes = 16 + 6 * (valueEnd(memory, type, offset, memory.length) - offset);
    this.#scratch.append(bytes, (json, start) => writeValue(json, start, type, memory, offset));
    return this.#scratch.take();
  }

  /** Members without a column, and values of another type than their column has. */
  #toMore(memory: Uint8Array, others: string): Buffer {
    if (this.#cells.more.length === 0) return Buffer.from(`{${others.slice(1)}}`);
    appendMembers(this.#scratch, memory, this.#cells.more);
    const members = this.#scratch.take();
    return others === '' ? members : Buffer.concat([members.subarray(0, -1), Buffer.from(`${others}}`)]);
  }

  /** Writes the rows as a group, and yields to the event loop after each column. */
  async writeGroup(writer: JsonWriter): Promise<void> {
    const rows = this.#rows;
    if (rows === 0) return;
    const parquet = this.#parquet;
    const before = parquet.row_groups.length;
    // The library keeps what describes each column of each group until the end of the file.
    if ((before + 1) * (this.#columns.length + 2) > LIMITS.exportChunks) {
      throw tooLarge(
        'too many columns for so many packets in one file: ask for a shorter interval or for fewer fields',
      );
    }
    for (const column of this.#sources()) {
      (column.data as Value[]).length = rows;
      parquet.write({ columnData: [column], rowGroupSize: rows });
      (column.data as Value[]).length = 0;
      this.take(writer);
      await clock.nextTurn();
    }
    // The library writes all columns of a group in one turn, which takes too long. What was written is one group.
    const groups = parquet.row_groups.splice(before);
    const sum = (of: (group: (typeof groups)[number]) => bigint | undefined): bigint =>
      groups.reduce((total, group) => total + (of(group) ?? 0n), 0n);
    parquet.row_groups.push({
      columns: groups.flatMap(({ columns }) => columns),
      num_rows: BigInt(rows),
      total_byte_size: sum((group) => group.total_byte_size),
      total_compressed_size: sum((group) => group.total_compressed_size),
    });
    parquet.num_rows -= BigInt(rows) * BigInt(groups.length - 1);
    this.#rows = 0;
    this.#bytes = 0;
  }

  *#sources(): Generator<ColumnSource> {
    for (const [column, name] of this.#cells.names.entries()) {
      const data = this.#columns[column] as Value[];
      const kind = this.#kinds[column] as Kind;
      if (kind === 'milliseconds' || kind === 'microseconds') yield { name, data, encoding: 'DELTA_BINARY_PACKED' };
      else yield { name, data, statistics: kind !== 'json' && kind !== 'text' };
    }
    if (this.#points !== null) yield { name: GEOMETRY, data: this.#points, encoding: 'PLAIN', statistics: false };
    yield { name: MORE, data: this.#more, statistics: false };
  }

  finish(writer: JsonWriter): void {
    const parquet = this.#parquet;
    // Only readers are told of JSON: the library would serialize values, which here are JSON already.
    parquet.schema = parquet.schema.map((element) =>
      element.logical_type?.type === 'JSON' ? { ...element, converted_type: 'JSON' } : element,
    );
    if (this.#points !== null) parquet.kvMetadata = [{ key: 'geo', value: toGeoMetadata(this.#hasHeights) }];
    parquet.finish();
    this.take(writer);
  }

  /** Moves what the library has written. */
  take(writer: JsonWriter): void {
    const written = this.#bytesOut.getBytes();
    writer.append(written.length, (out, pos) => {
      new Uint8Array(out.buffer, pos, written.length).set(written);
      return pos + written.length;
    });
    this.#bytesOut.index = 0;
  }
}

/** GeoParquet 1.1: longitude and latitude in WGS 84, which is what a file without `crs` has. */
const toGeoMetadata = (hasHeights: boolean): string =>
  JSON.stringify({
    version: '1.1.0',
    primary_column: GEOMETRY,
    columns: { [GEOMETRY]: { encoding: 'WKB', geometry_types: hasHeights ? ['Point', 'Point Z'] : ['Point'] } },
  });

const toBuffer = (memory: Uint8Array): Buffer =>
  memory instanceof Buffer ? memory : Buffer.from(memory.buffer, memory.byteOffset, memory.byteLength);
