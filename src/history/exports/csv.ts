/** CSV (RFC 4180) for spreadsheets, with possible formulas escaped. */
import { PACKET_FIELDS } from '../../core/packet-fields.js';
import { JsonWriter, textBound, writeAscii, writeName, writeValue } from '../../platform/mongo/bson/json-writer.js';
import { eachMember, isSameBytes, nameAt } from '../../platform/mongo/bson/members.js';
import { numberAt } from '../../platform/mongo/bson/numbers.js';
import { BSON_TYPES, int32, valueEnd } from '../../platform/mongo/bson/reader.js';
import { EXACT_DIGITS, isIdentifier, writeCsvText, writeIdentifier } from './csv-text.js';
import { appendText, type Encoder, type EncoderOptions } from './encoder.js';
import { toReason } from './ndjson.js';

const { STRING, DOCUMENT, ARRAY, NULL, UNDEFINED, OBJECT_ID, BINARY } = BSON_TYPES;
/** The last column: all fields without a column, as JSON. Parameters of devices never begin with an underscore. */
const MORE = '_more';
const MAX_COLUMNS = 500;
const MAX_TIME_MS = 8.64e15;

/** The column of a top-level member, and the rest of the path within its value. */
interface Target {
  readonly column: number;
  readonly rest: readonly string[];
}

interface KnownName {
  readonly bytes: Uint8Array;
  /** Null for members that go into the last column. */
  readonly targets: readonly Target[] | null;
}

/** U+FEFF in UTF-8: without it, spreadsheets read other characters than ASCII in the code page of their system. */
const BYTE_ORDER_MARK = '\ufeff';

export function createCsvEncoder({
  only,
  declared,
  isForSpreadsheet,
}: Pick<EncoderOptions, 'only' | 'declared' | 'isForSpreadsheet'>): Encoder {
  let rows: Rows | undefined;
  return {
    fields: only,
    begin(writer, first) {
      const names = only === null ? columnsOf(declared, first) : [...new Set(['_id', ...only])];
      rows = new Rows(names, { hasMore: only === null, isForSpreadsheet });
      if (isForSpreadsheet) appendText(writer, BYTE_ORDER_MARK);
      rows.header(writer);
    },
    packet: (writer, memory, start) => rows?.append(writer, memory, start),
    end(writer, error) {
      if (error !== null) appendText(writer, `#incomplete: ${toReason(error).replace(/[\r\n",;]/g, ' ')}\r\n`);
    },
  };
}

/** The fields of every packet, the declared parameters, and further fields of the first packets. */
function columnsOf(declared: readonly string[], first: { memory: Uint8Array; starts: readonly number[] } | null) {
  const names = new Set<string>([...PACKET_FIELDS, ...declared]);
  for (const start of first?.starts ?? []) {
    eachMember(first?.memory as Uint8Array, start, (_type, nameStart, nameEnd) => {
      if (names.size < MAX_COLUMNS) names.add(nameAt(first?.memory as Uint8Array, nameStart, nameEnd));
    });
  }
  return [...names].slice(0, MAX_COLUMNS);
}

class Rows {
  readonly #names: readonly string[];
  readonly #hasMore: boolean;
  readonly #isForSpreadsheet: boolean;
  readonly #targets = new Map<string, Target[]>();
  /** The members of the previous row in order: the next row nearly always has the same. */
  readonly #expected: KnownName[] = [];
  readonly #types: Uint8Array;
  readonly #starts: Int32Array;
  readonly #timeColumn: number;
  readonly #scratch = new JsonWriter(4_096);
  #more: number[] = [];

  constructor(
    names: readonly string[],
    { hasMore, isForSpreadsheet }: { hasMore: boolean; isForSpreadsheet: boolean },
  ) {
    this.#names = names;
    this.#hasMore = hasMore;
    this.#isForSpreadsheet = isForSpreadsheet;
    this.#types = new Uint8Array(names.length);
    this.#starts = new Int32Array(names.length);
    this.#timeColumn = names.indexOf('time');
    for (const [column, name] of names.entries()) {
      const [root = '', ...rest] = hasMore ? [name] : name.split('.');
      this.#targets.set(root, [...(this.#targets.get(root) ?? []), { column, rest }]);
    }
  }

  header(writer: JsonWriter): void {
    const names = this.#hasMore ? [...this.#names, MORE] : this.#names;
    for (const [index, name] of names.entries()) {
      if (index > 0) writer.raw(',');
      const bytes = Buffer.from(name);
      writer.append(8 + 3 * bytes.length, (out, pos) => writeCsvText(out, pos, bytes, 0, bytes.length));
    }
    writer.raw('\r\n');
  }

  append(writer: JsonWriter, memory: Uint8Array, start: number): void {
    this.#collect(memory, start);
    // JSON text in a cell doubles each of its quotes.
    const bytes = 2 * textBound(memory, start) + this.#names.length + 16;
    writer.append(bytes, (out, from) => this.#write(out, from, memory));
  }

  #collect(memory: Uint8Array, start: number): void {
    this.#types.fill(0);
    if (this.#more.length > 0) this.#more = [];
    let index = 0;
    eachMember(memory, start, (type, nameStart, nameEnd, valueStart) => {
      const expected = this.#expected[index];
      const known =
        expected !== undefined && isSameBytes(memory, nameStart, nameEnd, expected.bytes)
          ? expected
          : this.#know(index, memory, nameStart, nameEnd);
      index++;
      if (known.targets === null) {
        if (this.#hasMore) this.#more.push(type, nameStart, nameEnd, valueStart);
        return;
      }
      for (const target of known.targets) this.#place(target, memory, type, valueStart);
    });
  }

  #know(index: number, memory: Uint8Array, nameStart: number, nameEnd: number): KnownName {
    const targets = this.#targets.get(nameAt(memory, nameStart, nameEnd)) ?? null;
    const known = { bytes: memory.slice(nameStart, nameEnd), targets };
    if (index < MAX_COLUMNS) this.#expected[index] = known;
    return known;
  }

  #place({ column, rest }: Target, memory: Uint8Array, type: number, valueStart: number): void {
    if (rest.length === 0) {
      this.#types[column] = type;
      this.#starts[column] = valueStart;
      return;
    }
    if (type !== DOCUMENT) return;
    const [name, ...further] = rest;
    eachMember(memory, valueStart, (innerType, nameStart, nameEnd, innerStart) => {
      if (nameAt(memory, nameStart, nameEnd) === name) {
        this.#place({ column, rest: further }, memory, innerType, innerStart);
      }
    });
  }

  #write(out: DataView, from: number, memory: Uint8Array): number {
    let pos = from;
    for (let column = 0; column < this.#types.length; column++) {
      if (column > 0) out.setUint8(pos++, 0x2c);
      const type = this.#types[column] as number;
      if (type !== 0) pos = this.#writeCell(out, pos, memory, column);
    }
    if (this.#hasMore) pos = this.#writeMore(out, writeAscii(out, pos, ','), memory);
    return writeAscii(out, pos, '\r\n');
  }

  #writeCell(out: DataView, pos: number, memory: Uint8Array, column: number): number {
    const type = this.#types[column] as number;
    const offset = this.#starts[column] as number;
    if (type === NULL || type === UNDEFINED) return pos;
    if (type === STRING) return this.#writeText(out, pos, memory, offset);
    if (column === this.#timeColumn) return writeTime(out, pos, numberAt(memory, type, offset));
    if (type === DOCUMENT || type === ARRAY) {
      this.#scratch.append(textBound(memory, offset), (json, start) => writeValue(json, start, type, memory, offset));
      const text = this.#scratch.take();
      return writeCsvText(out, pos, text, 0, text.length);
    }
    const end = writeValue(out, pos, type, memory, offset);
    if (type !== OBJECT_ID && type !== BINARY) return isNull(out, pos, end) ? pos : this.#asIdentifier(out, pos, end);
    // Removes the quotes of JSON.
    for (let byte = pos; byte < end - 2; byte++) out.setUint8(byte, out.getUint8(byte + 1));
    return end - 2;
  }

  #writeText(out: DataView, pos: number, memory: Uint8Array, offset: number): number {
    const from = offset + 4;
    const end = offset + 3 + int32(memory, offset);
    const isDigits = this.#isForSpreadsheet && isIdentifier(memory, from, end);
    return (isDigits ? writeIdentifier : writeCsvText)(out, pos, memory, from, end);
  }

  /** Rewrites a number that was written from `pos` to `end`, if it has more digits than a spreadsheet keeps. */
  #asIdentifier(out: DataView, pos: number, end: number): number {
    if (!this.#isForSpreadsheet || end - pos < EXACT_DIGITS) return end;
    const digits = new Uint8Array(out.buffer, pos, end - pos).slice();
    return isIdentifier(digits, 0, digits.length) ? writeIdentifier(out, pos, digits, 0, digits.length) : end;
  }

  #writeMore(out: DataView, pos: number, memory: Uint8Array): number {
    const more = this.#more;
    if (more.length === 0) return pos;
    const scratch = this.#scratch;
    for (let index = 0; index < more.length; index += 4) {
      const [type = 0, nameStart = 0, nameEnd = 0, valueStart = 0] = more.slice(index, index + 4);
      scratch.raw(index === 0 ? '{' : ',');
      const bytes = 16 + 6 * (valueEnd(memory, type, valueStart, memory.length) - nameStart);
      scratch.append(bytes, (json, start) => {
        const value = writeName(json, start, memory, nameStart, nameEnd);
        return writeValue(json, value, type, memory, valueStart);
      });
    }
    scratch.raw('}');
    const text = scratch.take();
    return writeCsvText(out, pos, text, 0, text.length);
  }
}

/** NaN and infinite numbers are `null` in JSON. */
const isNull = (out: DataView, start: number, end: number): boolean =>
  end - start === 4 && out.getUint8(start) === 0x6e;

function writeTime(out: DataView, pos: number, timeMs: number): number {
  if (!(Math.abs(timeMs) <= MAX_TIME_MS)) return pos;
  return writeAscii(out, pos, new Date(timeMs).toISOString());
}
