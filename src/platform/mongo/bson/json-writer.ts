/**
 * Converts BSON bytes to JSON bytes without JavaScript objects: the hot path of every list. The text equals
 * `JSON.stringify(deserialize(bytes))` of the `bson` package, except that members keep their stored order, repeated names
 * are repeated, a DBRef is a plain document, and the key of a packet becomes the packet's `_id`. Throws a TypeError for a type
 * that never occurs here (other binary data, code, Decimal128, ...), and a RangeError for an invalid length, writing nothing.
 */
import { type BufferPool, FRESH } from './buffer-pool.js';
import { BSON_TYPES, byteAt, int32, int64, packetIdAt, valueEnd } from './reader.js';

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
const hex = (bytes: Uint8Array, offset: number): number =>
  (HEX[byteAt(bytes, offset)] as number) | ((HEX[byteAt(bytes, offset + 1)] as number) << 16);
export function writeAscii(out: DataView, start: number, text: string): number {
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
  for (let offset = from; offset < end; offset++) pos = writeByte(out, pos, byteAt(bson, offset));
  return writeAscii(out, pos, '"');
}

function writeObjectId(out: DataView, start: number, bson: Uint8Array, offset: number): number {
  out.setUint8(start, QUOTE);
  for (let i = 0; i < 12; i += 2) out.setInt32(start + 1 + i * 2, hex(bson, offset + i), true);
  out.setUint8(start + 25, QUOTE);
  return start + 26;
}

/** Writes the last `digits` digits of an int32; `digits` is even. */
function writeDigits(out: DataView, start: number, value: number, digits: number): number {
  let rest = value;
  for (let pos = start + digits - 2; pos >= start; pos -= 2) {
    const next = (rest / 100) | 0;
    out.setUint16(pos, DECIMAL[rest - next * 100] as number, true);
    rest = next;
  }
  return start + digits;
}

/** Writes an int32 of at most eight digits. */
function writeShort(out: DataView, start: number, value: number): number {
  const size = value < 0 ? -value : value;
  let pos = value < 0 ? writeAscii(out, start, '-') : start;
  let digits = 1;
  let bound = 10;
  for (; size >= bound; bound *= 10) digits++;
  if (digits & 1) out.setUint8(pos++, 0x30 + ((size / (bound / 10)) | 0));
  return writeDigits(out, pos, size, digits & ~1);
}

/** `| 0` tells V8 that a number fits into 32 bits: passing another one as an argument would allocate memory. */
function writeInteger(out: DataView, start: number, value: number): number {
  const size = Math.abs(value);
  if (size < 1e8) return writeShort(out, start, value | 0);
  const high = Math.floor(size / 1e8);
  const pos = writeShort(out, value < 0 ? writeAscii(out, start, '-') : start, high | 0);
  return writeDigits(out, pos, (size - high * 1e8) | 0, 8);
}

function writeInt64(out: DataView, start: number, bson: Uint8Array, offset: number): number {
  const value = int64(bson, offset);
  if (Math.abs(value) <= 2 ** 53 - (int32(bson, offset) && 1)) return writeInteger(out, start, value);
  return writeAscii(out, start, `{"high":${int32(bson, offset + 4)},"low":${int32(bson, offset)},"unsigned":false}`);
}

function writeDouble(out: DataView, start: number, bson: Uint8Array, offset: number): number {
  doubleHalves[0] = int32(bson, offset);
  doubleHalves[1] = int32(bson, offset + 4);
  return writeSharedDouble(out, start);
}

/** Writes a number like `JSON.stringify`, in at most 32 bytes. */
export function writeNumber(out: DataView, start: number, value: number): number {
  double[0] = value;
  return writeSharedDouble(out, start);
}
/** Writes the number in `double`, which no argument passes on. */
function writeSharedDouble(out: DataView, start: number): number {
  const value = double[0] as number;
  const size = Math.abs(value);
  const whole = Math.floor(size);
  if (whole === size && size < 1e8) return writeShort(out, start, value | 0);
  if (whole === size && size < 2 ** 53) return writeInteger(out, start, value);
  // A decimal of at most 15 digits that round-trips is the shortest form; below 1e-6 the shortest form has an exponent.
  const scaled = Math.round(size * 1e7);
  if (!(size >= 1e-6 && size < 1e8 && scaled / 1e7 === size)) return writeAscii(out, start, JSON.stringify(value));
  let pos = writeShort(out, value < 0 ? writeAscii(out, start, '-') : start, whole | 0);
  pos = writeDigits(out, writeAscii(out, pos, '.'), ((scaled - whole * 1e7) * 10) | 0, 8);
  while (out.getUint8(pos - 1) === 0x30) pos--;
  return pos;
}

function writeDate(out: DataView, start: number, bson: Uint8Array, offset: number): number {
  const time = int64(bson, offset);
  if (Math.abs(time) > 8.64e15) return writeAscii(out, start, 'null');
  const midnight = Math.floor(time / 864e5) * 864e5;
  if (midnight !== day.time) day = { time: midnight, text: JSON.stringify(new Date(midnight)) };
  const end = writeAscii(out, start, day.text);
  const passed = (time - midnight) | 0;
  writeDigits(out, end - 14, (passed / 36e5) | 0, 2);
  writeDigits(out, end - 11, ((passed / 6e4) | 0) % 60, 2);
  writeDigits(out, end - 8, ((passed / 1e3) | 0) % 60, 2);
  out.setUint8(end - 5, 0x30 + (((passed / 100) | 0) % 10));
  writeDigits(out, end - 4, passed, 2);
  return end;
}

/** Writes a quoted name and the colon after it. */
export function writeName(out: DataView, start: number, bson: Uint8Array, from: number, end: number): number {
  return writeAscii(out, writeString(out, start, bson, from, end), ':');
}

export function writeValue(out: DataView, pos: number, type: number, bson: Uint8Array, offset: number): number {
  if (type === DOUBLE) return writeDouble(out, pos, bson, offset);
  if (type === STRING) return writeString(out, pos, bson, offset + 4, offset + 3 + int32(bson, offset));
  if (type === DOCUMENT || type === ARRAY) return writeContainer(out, pos, type, bson, offset);
  if (type === OBJECT_ID) return writeObjectId(out, pos, bson, offset);
  if (type === BOOLEAN) return writeAscii(out, pos, bson[offset] === 0 ? 'false' : 'true');
  if (type === DATE) return writeDate(out, pos, bson, offset);
  if (type === NULL || type === UNDEFINED) return writeAscii(out, pos, 'null');
  if (type === INT32) return writeInteger(out, pos, int32(bson, offset));
  if (type === INT64) return writeInt64(out, pos, bson, offset);
  const packetId = type === BINARY ? packetIdAt(bson, offset) : -1;
  if (packetId !== -1) return writeObjectId(out, pos, bson, packetId);
  throw new TypeError(`BSON type ${type} has no JSON form`);
}

function writeContainer(out: DataView, start: number, container: number, bson: Uint8Array, from: number): number {
  const named = container === DOCUMENT;
  const end = from + int32(bson, from) - 1;
  let pos = writeAscii(out, start, named ? '{' : '[');
  for (let offset = from + 4; offset < end; ) {
    const before = pos;
    const type = byteAt(bson, offset++);
    if (named) out.setUint8(pos++, QUOTE);
    for (let byte = byteAt(bson, offset++); byte !== 0; byte = byteAt(bson, offset++)) {
      if (named) pos = writeByte(out, pos, byte);
    }
    if (named) out.setUint16(pos, NAME_END);
    const value = offset;
    offset = valueEnd(bson, type, value, end);
    pos = named && type === UNDEFINED ? before : writeValue(out, named ? pos + 2 : pos, type, bson, value);
    if (pos > before) out.setUint8(pos++, COMMA);
  }
  return writeAscii(out, pos > start + 1 ? pos - 1 : pos, named ? '}' : ']');
}

/** An upper bound of the size of a document's text: the text of an element has at most six times the bytes of the element. */
export const textBound = (bson: Uint8Array, start = 0): number =>
  16 + 6 * (valueEnd(bson, DOCUMENT, start, bson.length) - start);

/** Writes text incrementally. A class, because V8 stores an object literal with an accessor as a dictionary. */
export class JsonWriter {
  readonly #initialBytes: number;
  readonly #pool: BufferPool;
  #out = NOTHING;
  #pos = 0;

  /** The buffer of a text comes from `pool`; the code that takes the text releases it. */
  constructor(initialBytes = 16_384, pool: BufferPool = FRESH) {
    this.#initialBytes = initialBytes;
    this.#pool = pool;
  }

  get length(): number {
    return this.#pos;
  }

  /** Reserves space at once: a buffer that grows in steps is copied each time and leaves garbage. */
  reserve(more: number): void {
    const needed = this.#pos + more;
    if (needed <= this.#out.byteLength) return;
    // Not cleared: only the written part is handed out.
    const grown = this.#pool.acquire(Math.ceil(Math.max(this.#initialBytes, this.#out.byteLength * 2, needed)));
    grown.set(new Uint8Array(this.#out.buffer, 0, this.#pos));
    this.#pool.release(Buffer.from(this.#out.buffer));
    this.#out = new DataView(grown.buffer);
  }

  /** Appends the document that begins at `start` as an object. */
  document(bson: Uint8Array, start = 0): void {
    this.reserve(textBound(bson, start));
    this.#pos = writeContainer(this.#out, this.#pos, DOCUMENT, bson, start);
  }

  /** Appends the document's members without braces, after a comma unless the last byte written is `{`. */
  members(bson: Uint8Array): void {
    this.reserve(textBound(bson));
    const out = this.#out;
    const pos = this.#pos;
    const start = pos > 0 && out.getUint8(pos - 1) === BRACE ? pos - 1 : pos;
    const end = writeContainer(out, start, DOCUMENT, bson, 0) - 1;
    if (start === pos) out.setUint8(pos, COMMA);
    if (end > start + 1) this.#pos = end;
  }

  /** Lets `write` write at most `bytes` from a position; it returns the end. */
  append(bytes: number, write: (out: DataView, pos: number) => number): void {
    this.reserve(bytes);
    this.#pos = write(this.#out, this.#pos);
  }

  /** Appends JSON text (ASCII) unchanged. */
  raw(text: string): void {
    this.reserve(text.length);
    this.#pos = writeAscii(this.#out, this.#pos, text);
  }

  /** Returns the written bytes and resets the writer. Short texts are copied, so that the buffer is reused. */
  take(): Buffer<ArrayBuffer> {
    const written = Buffer.from(this.#out.buffer, 0, this.#pos);
    this.#pos = 0;
    if (written.length < 4096) return Buffer.from(written);
    this.#out = NOTHING;
    return written;
  }
}

let shared = new JsonWriter();

/** Returns the text that `write` writes synchronously, through a shared buffer. */
export function writeJson(write: (writer: JsonWriter) => void): Buffer<ArrayBuffer> {
  try {
    write(shared);
  } catch (error) {
    // The shared writer holds an incomplete text, perhaps in a large buffer.
    shared = new JsonWriter();
    throw error;
  }
  return shared.take();
}

export const toJson = (bson: Uint8Array): Buffer<ArrayBuffer> => writeJson((writer) => writer.document(bson));
