/** CSV (RFC 4180) for spreadsheets, with possible formulas escaped. */

import { EXACT_DIGITS } from '../../core/spreadsheet.js';
import { JsonWriter, textBound, writeAscii, writeValue } from '../../platform/mongo/bson/json-writer.js';
import { numberAt } from '../../platform/mongo/bson/numbers.js';
import { BSON_TYPES, int32 } from '../../platform/mongo/bson/reader.js';
import { appendMembers, Cells, columnsOf, MORE } from './columns.js';
import { isIdentifier, writeCsvText, writeIdentifier } from './csv-text.js';
import { appendText, type CsvForm, type Encoder, type EncoderOptions } from './encoder.js';
import { toReason } from './ndjson.js';

const { STRING, DOCUMENT, ARRAY, NULL, UNDEFINED, OBJECT_ID, BINARY } = BSON_TYPES;
const MAX_TIME_MS = 8.64e15;
const POINT = 0x2e;
const COMMA = 0x2c;

/** U+FEFF in UTF-8: without it, spreadsheets read other characters than ASCII in the code page of their system. */
const BYTE_ORDER_MARK = '\ufeff';

export function createCsvEncoder({ only, declared, csv }: Pick<EncoderOptions, 'only' | 'declared' | 'csv'>): Encoder {
  let rows: Rows | undefined;
  return {
    fields: only,
    begin(writer, first) {
      rows = new Rows(new Cells(columnsOf(only, declared.keys(), first), only === null), csv);
      if (csv.isForSpreadsheet) appendText(writer, BYTE_ORDER_MARK);
      rows.header(writer);
    },
    packet: (writer, memory, start) => rows?.append(writer, memory, start),
    end(writer, error) {
      if (error !== null) appendText(writer, `#incomplete: ${toReason(error).replace(/[\r\n",;]/g, ' ')}\r\n`);
    },
  };
}

class Rows {
  readonly #cells: Cells;
  readonly #form: CsvForm;
  readonly #timeColumn: number;
  readonly #scratch = new JsonWriter(4_096);

  constructor(cells: Cells, form: CsvForm) {
    this.#cells = cells;
    this.#form = form;
    this.#timeColumn = cells.names.indexOf('time');
  }

  header(writer: JsonWriter): void {
    const { names: columns, hasMore } = this.#cells;
    const names = hasMore ? [...columns, MORE] : columns;
    for (const [index, name] of names.entries()) {
      if (index > 0) writer.raw(this.#form.separator);
      const bytes = Buffer.from(name);
      writer.append(8 + 3 * bytes.length, (out, pos) => writeCsvText(out, pos, bytes, 0, bytes.length));
    }
    writer.raw('\r\n');
  }

  append(writer: JsonWriter, memory: Uint8Array, start: number): void {
    this.#cells.read(memory, start);
    // JSON text in a cell doubles each of its quotes.
    const bytes = 2 * textBound(memory, start) + this.#cells.names.length + 16;
    writer.append(bytes, (out, from) => this.#write(out, from, memory));
  }

  #write(out: DataView, from: number, memory: Uint8Array): number {
    const { types, hasMore } = this.#cells;
    const { separator } = this.#form;
    let pos = from;
    for (let column = 0; column < types.length; column++) {
      if (column > 0) pos = writeAscii(out, pos, separator);
      const type = types[column] as number;
      if (type !== 0) pos = this.#writeCell(out, pos, memory, column);
    }
    if (hasMore) pos = this.#writeMore(out, writeAscii(out, pos, separator), memory);
    return writeAscii(out, pos, '\r\n');
  }

  #writeCell(out: DataView, pos: number, memory: Uint8Array, column: number): number {
    const type = this.#cells.types[column] as number;
    const offset = this.#cells.starts[column] as number;
    if (type === NULL || type === UNDEFINED) return pos;
    if (type === STRING) return this.#writeText(out, pos, memory, offset);
    if (column === this.#timeColumn) return writeTime(out, pos, numberAt(memory, type, offset));
    if (type === DOCUMENT || type === ARRAY) {
      this.#scratch.append(textBound(memory, offset), (json, start) => writeValue(json, start, type, memory, offset));
      const text = this.#scratch.take();
      return writeCsvText(out, pos, text, 0, text.length);
    }
    const end = writeValue(out, pos, type, memory, offset);
    if (type !== OBJECT_ID && type !== BINARY) return isNull(out, pos, end) ? pos : this.#asNumber(out, pos, end);
    // Removes the quotes of JSON.
    for (let byte = pos; byte < end - 2; byte++) out.setUint8(byte, out.getUint8(byte + 1));
    return end - 2;
  }

  #writeText(out: DataView, pos: number, memory: Uint8Array, offset: number): number {
    const from = offset + 4;
    const end = offset + 3 + int32(memory, offset);
    const isDigits = this.#form.isForSpreadsheet && isIdentifier(memory, from, end);
    return (isDigits ? writeIdentifier : writeCsvText)(out, pos, memory, from, end);
  }

  /** Rewrites a number that was written from `pos` to `end`: with the decimal sign, and as text if it has more digits than a spreadsheet keeps. */
  #asNumber(out: DataView, pos: number, end: number): number {
    if (this.#form.decimalSign === ',') {
      for (let byte = pos; byte < end; byte++) if (out.getUint8(byte) === POINT) out.setUint8(byte, COMMA);
    }
    if (!this.#form.isForSpreadsheet || end - pos < EXACT_DIGITS) return end;
    const digits = new Uint8Array(out.buffer, pos, end - pos).slice();
    return isIdentifier(digits, 0, digits.length) ? writeIdentifier(out, pos, digits, 0, digits.length) : end;
  }

  #writeMore(out: DataView, pos: number, memory: Uint8Array): number {
    if (this.#cells.more.length === 0) return pos;
    appendMembers(this.#scratch, memory, this.#cells.more);
    const text = this.#scratch.take();
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
