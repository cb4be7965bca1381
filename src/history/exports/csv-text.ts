/** Writes text as a CSV cell. */
import { CHANGED_NUMBER, EXACT_DIGITS, SIGNED_NUMBER } from '../../core/spreadsheet.js';
import { writeAscii } from '../../platform/mongo/bson/json-writer.js';

const QUOTE = 0x22;
const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const TAB = 0x09;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;
const APOSTROPHE = 0x27;
const PLUS = 0x2b;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
/** The characters that begin a formula in a spreadsheet: `=`, `+`, `-`, `@`. */
const FORMULA: ReadonlySet<number> = new Set([0x3d, 0x2b, 0x2d, 0x40]);
/** The same in full width: the third byte, after EF BC. */
const WIDE_FORMULA: ReadonlySet<number> = new Set([0x9d, 0x8b, 0x8d, 0xa0]);

const isFormula = (bytes: Uint8Array, offset: number): boolean =>
  FORMULA.has(bytes[offset] as number) ||
  (bytes[offset] === 0xef && bytes[offset + 1] === 0xbc && WIDE_FORMULA.has(bytes[offset + 2] as number));

const isBreak = (byte: number): boolean => byte === SEMICOLON || byte === TAB || byte === LINE_FEED || byte === RETURN;

const SIGNED_NUMBER_BYTES = 40;

function isSignedNumber(bytes: Uint8Array, offset: number, end: number): boolean {
  if (bytes[offset] !== PLUS && bytes[offset] !== MINUS) return false;
  const last = Math.min(end, offset + SIGNED_NUMBER_BYTES);
  return SIGNED_NUMBER.test(String.fromCharCode(...bytes.subarray(offset, last)));
}

/**
 * Writes UTF-8 text as a cell, quoted if needed. An apostrophe precedes every possible formula (OWASP, "CSV injection"): at the
 * beginning, and after other characters that spreadsheets may use as separators. A number is none. The result has at most three
 * times the bytes, and three more.
 */
export function writeCsvText(out: DataView, start: number, bytes: Uint8Array, from: number, end: number): number {
  const isQuoted = needsQuotes(bytes, from, end);
  let pos = start;
  if (isQuoted) out.setUint8(pos++, QUOTE);
  let isBeginning = true;
  for (let offset = from; offset < end; offset++) {
    const byte = bytes[offset] as number;
    if (isBeginning && isFormula(bytes, offset) && !isSignedNumber(bytes, offset, end)) out.setUint8(pos++, APOSTROPHE);
    isBeginning = isBreak(byte) || (isBeginning && byte === QUOTE);
    if (byte === QUOTE) out.setUint8(pos++, QUOTE);
    out.setUint8(pos++, byte);
  }
  if (isQuoted) out.setUint8(pos++, QUOTE);
  return pos;
}

function needsQuotes(bytes: Uint8Array, from: number, end: number): boolean {
  for (let offset = from; offset < end; offset++) {
    const byte = bytes[offset] as number;
    if (byte === QUOTE || byte === COMMA || isBreak(byte)) return true;
  }
  // Spreadsheets strip unquoted spaces.
  return bytes[from] === 0x20 || bytes[end - 1] === 0x20;
}

const CHANGED_NUMBER_BYTES = 32;

/** Whether digits that are as good as an identifier would not survive in a spreadsheet: more of them than it keeps, or a form. */
export function isIdentifier(bytes: Uint8Array, from: number, end: number): boolean {
  let digits = 0;
  for (let offset = from; offset < end; offset++) {
    const byte = bytes[offset] as number;
    if (byte >= ZERO && byte <= NINE) digits++;
    else if (offset > from || (byte !== PLUS && byte !== MINUS)) return isChangedNumber(bytes, from, end);
  }
  return digits >= EXACT_DIGITS || isChangedNumber(bytes, from, end);
}

const isChangedNumber = (bytes: Uint8Array, from: number, end: number): boolean =>
  end - from > 1 &&
  end - from <= CHANGED_NUMBER_BYTES &&
  CHANGED_NUMBER.test(String.fromCharCode(...bytes.subarray(from, end)));

/** Writes digits as a formula that is this text: the only form that every spreadsheet reads as text. */
export function writeIdentifier(out: DataView, start: number, bytes: Uint8Array, from: number, end: number): number {
  let pos = writeAscii(out, start, '"=""');
  for (let offset = from; offset < end; offset++) out.setUint8(pos++, bytes[offset] as number);
  return writeAscii(out, pos, '"""');
}
