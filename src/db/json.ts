/**
 * BSON bytes to JSON bytes without JavaScript objects in between: the hot path of every list. The text equals
 * `JSON.stringify(deserialize(bytes))` of the `bson` package, save that members keep their stored order, repeated names
 * are repeated, a DBRef is a plain document and a packet's key is the packet's `_id`. A type that cannot occur here (other
 * binary data, code, Decimal128, ...) throws a TypeError, a length out of range a RangeError; then nothing is written.
 */

import { BSON_TYPES, byteAt, int32, int64, packetIdAt, valueEnd } from './bson.js';
import { FRESH, type Memory } from './memory.js';

const { DOUBLE, STRING, DOCUMENT, ARRAY, BINARY, INT32, INT64, UNDEFINED, OBJECT_ID, BOOLEAN, DATE, NULL } = BSON_TYPES;
const [QUOTE, NAME_END, COMMA, BRACE] = [0x22, 0x223a, 0x2c, 0x7b] as const;

const pair = (n: number, radix: number): number => Buffer.from(n.toString(radix).padStart(2, '0')).readUInt16LE();
const HEX = Uint16Array.from({ length: 256 }, (_, n) => pair(n, 16));
const DECIMAL = Uint16Array.from({ length: 100 }, (_, n) => pair(n, 10));
const ESCAPES = Array.from({ length: 128 }, (_, byte) => JSON.stringify(String.fromCharCode(byte)).slice(1, -1));
const NOTHING = new DataView(new ArrayBuffer(0));
const double = new Float64Array(1);
const doubleHalves = new Int32Array(double.buffer);
let day = { time: Number.NaN, text: '' };
const hex = (bytes: Uint8Array, at: number): number =>
  (HEX[byteAt(bytes, at)] as number) | ((HEX[byteAt(bytes, at + 1)] as number) << 16);
function writeAscii(out: DataView, start: number, text: string): number {
  for (let i = 0; i < text.length; i++) out.setUint8(start + i, text.charCodeAt(i));
  return start + text.length;
}

function writeByte(out: DataView, pos: number, byte: number): number {
  out.setUint8(pos, byte);
  if (byte >= 0x20 && byte !== QUOTE && byte !== 0x5c) return pos + 1;
  return writeAscii(out, pos, ESCAPES[byte] as string);
}

function writeString(out: DataView, start: number, bson: Uint8Array, from: number, end: number): number {
  let pos = writeAscii(out, start, '"');
  for (let at = from; at < end; at++) pos = writeByte(out, pos, byteAt(bson, at));
  return writeAscii(out, pos, '"');
}

function writeObjectId(out: DataView, start: number, bson: Uint8Array, at: number): number {
  out.setUint8(start, QUOTE);
  for (let i = 0; i < 12; i += 2) out.setInt32(start + 1 + i * 2, hex(bson, at + i), true);
  out.setUint8(start + 25, QUOTE);
  return start + 26;
}

/** Writes the last digits, an even number of them, of an int32. */
function writeDigits(out: DataView, start: number, value: number, digits: number): number {
  let rest = value;
  for (let pos = start + digits - 2; pos >= start; pos -= 2) {
    const next = (rest / 100) | 0;
    out.setUint16(pos, DECIMAL[rest - next * 100] as number, true);
    rest = next;
  }
  return start + digits;
}

function writeInteger(out: DataView, start: number, value: number): number {
  const size = Math.abs(value);
  const high = size < 1e8 ? size : Math.floor(size / 1e8);
  let pos = value < 0 ? writeAscii(out, start, '-') : start;
  let digits = 1;
  let bound = 10;
  for (; high >= bound; bound *= 10) digits++;
  if (digits & 1) out.setUint8(pos++, 0x30 + ((high / (bound / 10)) | 0));
  pos = writeDigits(out, pos, high, digits & ~1);
  return size < 1e8 ? pos : writeDigits(out, pos, size - high * 1e8, 8);
}

function writeInt64(out: DataView, start: number, bson: Uint8Array, at: number): number {
  const value = int64(bson, at);
  if (Math.abs(value) <= 2 ** 53 - (int32(bson, at) && 1)) return writeInteger(out, start, value);
  return writeAscii(out, start, `{"high":${int32(bson, at + 4)},"low":${int32(bson, at)},"unsigned":false}`);
}

function writeDouble(out: DataView, start: number, bson: Uint8Array, at: number): number {
  doubleHalves[0] = int32(bson, at);
  doubleHalves[1] = int32(bson, at + 4);
  const value = double[0] as number;
  const size = Math.abs(value);
  const whole = Math.floor(size);
  if (whole === size && size < 2 ** 53) return writeInteger(out, start, value);
  // A decimal of at most 15 digits that gives the value back is its shortest form; below 1e-6 that has an exponent.
  const scaled = Math.round(size * 1e7);
  if (!(size >= 1e-6 && size < 1e8 && scaled / 1e7 === size)) return writeAscii(out, start, JSON.stringify(value));
  let pos = writeInteger(out, value < 0 ? writeAscii(out, start, '-') : start, whole);
  pos = writeDigits(out, writeAscii(out, pos, '.'), (scaled - whole * 1e7) * 10, 8);
  while (out.getUint8(pos - 1) === 0x30) pos--;
  return pos;
}

function writeDate(out: DataView, start: number, bson: Uint8Array, at: number): number {
  const time = int64(bson, at);
  if (Math.abs(time) > 8.64e15) return writeAscii(out, start, 'null');
  const midnight = Math.floor(time / 864e5) * 864e5;
  if (midnight !== day.time) day = { time: midnight, text: JSON.stringify(new Date(midnight)) };
  const end = writeAscii(out, start, day.text);
  const passed = time - midnight;
  writeDigits(out, end - 14, (passed / 36e5) | 0, 2);
  writeDigits(out, end - 11, ((passed / 6e4) | 0) % 60, 2);
  writeDigits(out, end - 8, ((passed / 1e3) | 0) % 60, 2);
  out.setUint8(end - 5, 0x30 + (((passed / 100) | 0) % 10));
  writeDigits(out, end - 4, passed, 2);
  return end;
}

function writeValue(out: DataView, pos: number, type: number, bson: Uint8Array, at: number): number {
  if (type === DOUBLE) return writeDouble(out, pos, bson, at);
  if (type === STRING) return writeString(out, pos, bson, at + 4, at + 3 + int32(bson, at));
  if (type === DOCUMENT || type === ARRAY) return writeContainer(out, pos, type, bson, at);
  if (type === OBJECT_ID) return writeObjectId(out, pos, bson, at);
  if (type === BOOLEAN) return writeAscii(out, pos, bson[at] === 0 ? 'false' : 'true');
  if (type === DATE) return writeDate(out, pos, bson, at);
  if (type === NULL || type === UNDEFINED) return writeAscii(out, pos, 'null');
  if (type === INT32) return writeInteger(out, pos, int32(bson, at));
  if (type === INT64) return writeInt64(out, pos, bson, at);
  if (type === BINARY && packetIdAt(bson, at) !== -1) return writeObjectId(out, pos, bson, packetIdAt(bson, at));
  throw new TypeError(`BSON type ${type} has no JSON form`);
}

function writeContainer(out: DataView, start: number, container: number, bson: Uint8Array, from: number): number {
  const named = container === DOCUMENT;
  const end = from + int32(bson, from) - 1;
  let pos = writeAscii(out, start, named ? '{' : '[');
  for (let at = from + 4; at < end; ) {
    const before = pos;
    const type = byteAt(bson, at++);
    if (named) out.setUint8(pos++, QUOTE);
    for (let byte = byteAt(bson, at++); byte !== 0; byte = byteAt(bson, at++)) {
      if (named) pos = writeByte(out, pos, byte);
    }
    if (named) out.setUint16(pos, NAME_END);
    const value = at;
    at = valueEnd(bson, type, value, end);
    pos = named && type === UNDEFINED ? before : writeValue(out, named ? pos + 2 : pos, type, bson, value);
    if (pos > before) out.setUint8(pos++, COMMA);
  }
  return writeAscii(out, pos > start + 1 ? pos - 1 : pos, named ? '}' : ']');
}

/** Room enough for a document's text: no element's text takes more than six times the bytes of the element. */
const roomFor = (bson: Uint8Array, start = 0): number =>
  16 + 6 * (valueEnd(bson, DOCUMENT, start, bson.length) - start);

/** Writes text piece by piece. A class, since V8 keeps a literal with an accessor as a dictionary. */
export class JsonWriter {
  readonly #initialBytes: number;
  readonly #memory: Memory;
  #out = NOTHING;
  #pos = 0;

  /** `memory`: where the text is written; whoever takes the text gives it back. */
  constructor(initialBytes = 16_384, memory: Memory = FRESH) {
    this.#initialBytes = initialBytes;
    this.#memory = memory;
  }

  get length(): number {
    return this.#pos;
  }

  /** Makes room for so many bytes at once: a buffer that grows step by step is copied, and leaves garbage behind. */
  reserve(more: number): void {
    const needed = this.#pos + more;
    if (needed <= this.#out.byteLength) return;
    // Not cleared: only what was written is handed out.
    const grown = this.#memory.lend(Math.ceil(Math.max(this.#initialBytes, this.#out.byteLength * 2, needed)));
    grown.set(new Uint8Array(this.#out.buffer, 0, this.#pos));
    this.#memory.takeBack(Buffer.from(this.#out.buffer));
    this.#out = new DataView(grown.buffer);
  }

  /** Appends the document that begins there as an object. */
  document(bson: Uint8Array, start = 0): void {
    this.reserve(roomFor(bson, start));
    this.#pos = writeContainer(this.#out, this.#pos, DOCUMENT, bson, start);
  }

  /** Appends the document's members without braces, after a comma unless the last byte written is `{`. */
  members(bson: Uint8Array): void {
    this.reserve(roomFor(bson));
    const [out, pos] = [this.#out, this.#pos];
    const start = pos > 0 && out.getUint8(pos - 1) === BRACE ? pos - 1 : pos;
    const end = writeContainer(out, start, DOCUMENT, bson, 0) - 1;
    if (start === pos) out.setUint8(pos, COMMA);
    if (end > start + 1) this.#pos = end;
  }

  /** Appends JSON text (ASCII) as it is. */
  raw(text: string): void {
    this.reserve(text.length);
    this.#pos = writeAscii(this.#out, this.#pos, text);
  }

  /** Hands out what was written, and starts anew; little is copied, so that the memory serves again. */
  take(): Buffer<ArrayBuffer> {
    const written = Buffer.from(this.#out.buffer, 0, this.#pos);
    this.#pos = 0;
    if (written.length < 4096) return Buffer.from(written);
    this.#out = NOTHING;
    return written;
  }
}

let shared = new JsonWriter();

/** What `write` writes before it returns, in memory that serves for every text that is written at once. */
export function writeJson(write: (writer: JsonWriter) => void): Buffer<ArrayBuffer> {
  try {
    write(shared);
  } catch (error) {
    // Half a text, and perhaps much room for the other half.
    shared = new JsonWriter();
    throw error;
  }
  return shared.take();
}

export const toJson = (bson: Uint8Array): Buffer<ArrayBuffer> => writeJson((writer) => writer.document(bson));
