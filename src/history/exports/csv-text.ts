/** Writes text as a CSV cell. */
const [QUOTE, COMMA, SEMICOLON, TAB, LINE_FEED, RETURN] = [0x22, 0x2c, 0x3b, 0x09, 0x0a, 0x0d] as const;
const APOSTROPHE = 0x27;
/** The characters that begin a formula in a spreadsheet: `=`, `+`, `-`, `@`. */
const FORMULA: ReadonlySet<number> = new Set([0x3d, 0x2b, 0x2d, 0x40]);
/** The same in full width: the third byte, after EF BC. */
const WIDE_FORMULA: ReadonlySet<number> = new Set([0x9d, 0x8b, 0x8d, 0xa0]);

const isFormula = (bytes: Uint8Array, offset: number): boolean =>
  FORMULA.has(bytes[offset] as number) ||
  (bytes[offset] === 0xef && bytes[offset + 1] === 0xbc && WIDE_FORMULA.has(bytes[offset + 2] as number));

const isBreak = (byte: number): boolean => byte === SEMICOLON || byte === TAB || byte === LINE_FEED || byte === RETURN;

/**
 * Writes UTF-8 text as a cell, quoted if needed. An apostrophe precedes every possible formula (OWASP, "CSV injection"): at the
 * beginning, and after other characters that spreadsheets may use as separators. The result has at most three times the bytes,
 * and three more.
 */
export function writeCsvText(out: DataView, start: number, bytes: Uint8Array, from: number, end: number): number {
  const isQuoted = needsQuotes(bytes, from, end);
  let pos = start;
  if (isQuoted) out.setUint8(pos++, QUOTE);
  let isBeginning = true;
  for (let offset = from; offset < end; offset++) {
    const byte = bytes[offset] as number;
    if (isBeginning && isFormula(bytes, offset)) out.setUint8(pos++, APOSTROPHE);
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
