/** Packs stored packets of one object into a bucket of columns. */
import { isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import { numberAt } from '../platform/mongo/bson/numbers.js';
import { ByteWriter, WHOLE_MAX } from './bytes.js';
import { COLUMN_FORMS, Column } from './column.js';
import { compress } from './compression.js';
import { type Bucket, type ColumnHead, FORMAT, writeHead } from './head.js';
import { KEY_TYPE, toKeys, writeKeys } from './keys.js';
import { type Member, membersOf } from './members.js';
import { ShapeCollector } from './shapes.js';
import { toStatistics } from './statistics.js';

/** The fields that every packet has; series of them would tell nothing. */
const WITHOUT_STATISTICS: ReadonlySet<string> = new Set(['_id', '_ts', 'time', '_oid', 'id', '_gid']);
const STAMPS_PER_MS = 1_000;

/** Whether a document can be packed: with a whole `time`, and with names that are different and valid text. Others stay rows. */
export function isPackable(row: Buffer): boolean {
  const members = membersOf(row);
  if (members === null || members.length > FORMAT.columns || row.length > FORMAT.bytes) return false;
  const names = new Set<string>();
  let timeMs = Number.NaN;
  for (const member of members) {
    const name = nameOf(row, member);
    names.add(name);
    if (name === 'time') timeMs = numberAt(row, member.type, member.start);
    if (!isAscii(row, member) && !isUtf8(row.subarray(member.nameStart, member.nameEnd))) return false;
  }
  return names.size === members.length && isWhole(timeMs);
}

function isAscii(row: Buffer, { nameStart, nameEnd }: Member): boolean {
  for (let pos = nameStart; pos < nameEnd; pos++) if ((row[pos] as number) > ASCII_MAX) return false;
  return true;
}

const ASCII_MAX = 0x7f;
/** Whether the streams can take it. */
const isWhole = (number: number): boolean => Number.isInteger(number) && Math.abs(number) < WHOLE_MAX;

const nameOf = (row: Buffer, { nameStart, nameEnd }: Member): string => row.toString('latin1', nameStart, nameEnd);

/** Thrown for packets that together have more fields than a bucket has columns: fewer of them have fewer fields. */
export class TooManyFieldsError extends RangeError {
  constructor() {
    super(`packets with more than ${FORMAT.columns} different fields`);
  }
}

/** Packs rows that are packable, in their order. Throws a RangeError if there are none or more than the format allows. */
export function pack(rows: readonly Buffer[]): Bucket {
  const bytes = rows.reduce((sum, { length }) => sum + length, 0);
  if (rows.length === 0 || rows.length > FORMAT.rows || bytes > FORMAT.bytes) {
    throw new RangeError(`a bucket of ${rows.length} packets with ${bytes} bytes`);
  }
  const { columns, shapes } = collect(rows);
  const time = columns.get('time');
  const times = time === undefined ? null : wholeNumbersOf(time);
  if (times?.length !== rows.length) throw new RangeError('a packet without a time');
  const { fromMs, toMs } = intervalOf(times);
  const stamps = stampsIn(columns.get('_ts'), rows.length);
  const heads: ColumnHead[] = [];
  const packed = new Map<string, Buffer>();
  for (const column of columns.values()) {
    const name = column.name.toString();
    const finished = finishColumn(column, { name, times, stamps });
    const statistics = WITHOUT_STATISTICS.has(name) ? null : toStatistics(column, times);
    heads.push({ name, bytes: finished.length, crc: crc32(finished), statistics });
    packed.set(name, finished);
  }
  const parts = { rows: rows.length, fromMs, toMs, bytes, columns: heads };
  return { fromMs, toMs, head: writeHead(parts, shapes), columns: packed };
}

function collect(rows: readonly Buffer[]): { columns: ReadonlyMap<string, Column>; shapes: Buffer } {
  const columns = new Map<string, Column>();
  const places = new Map<Column, number>();
  const shapes = new ShapeCollector();
  for (const [index, row] of rows.entries()) {
    const shape: number[] = [];
    for (const member of membersOf(row) ?? []) {
      const name = nameOf(row, member);
      let column = columns.get(name);
      if (column === undefined) {
        if (columns.size === FORMAT.columns) throw new TooManyFieldsError();
        column = new Column(row.subarray(member.nameStart, member.nameEnd));
        places.set(column, columns.size);
        columns.set(name, column);
      }
      column.add(index, row, member);
      shape.push(places.get(column) as number);
    }
    shapes.add(shape);
  }
  return { columns, shapes: shapes.finish() };
}

function intervalOf(times: Float64Array): { fromMs: number; toMs: number } {
  let fromMs = Number.POSITIVE_INFINITY;
  let toMs = Number.NEGATIVE_INFINITY;
  for (const time of times) {
    if (time < fromMs) fromMs = time;
    if (time > toMs) toMs = time;
  }
  return { fromMs, toMs };
}

/** All values, if each is a whole number that the streams can take; null otherwise. */
function wholeNumbersOf(column: { allNumbers(): Float64Array | null }): Float64Array | null {
  const numbers = column.allNumbers();
  return numbers?.every(isWhole) ? numbers : null;
}

function stampsIn(column: Column | undefined, rows: number): Float64Array | null {
  const stamps = column === undefined ? null : wholeNumbersOf(column);
  return stamps?.length === rows ? stamps : null;
}

interface Neighbors {
  readonly name: string;
  readonly times: Float64Array;
  readonly stamps: Float64Array | null;
}

function finishColumn(column: Column, { name, times, stamps }: Neighbors): Buffer {
  const isFull = column.rows.length === times.length;
  if (name === '_ts') {
    const isBeside = isFull && column.allNumbers() !== null;
    return column.finish(isBeside ? times.map((time) => time * STAMPS_PER_MS) : null);
  }
  const texts = column.textsOf(KEY_TYPE);
  const keys = name === '_id' && texts.length === column.rows.length ? toKeys(texts) : null;
  if (keys === null) return column.finish(null);
  const out = new ByteWriter();
  out.byte(COLUMN_FORMS.keys);
  out.bytes(keys.object);
  writeKeys(out, keys.ids, isFull ? stamps : null);
  return compress(out.finish());
}
