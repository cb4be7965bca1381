/**
 * Reads numbers without changing them (docs/reference/history.md#numbers-and-identifiers). A double has 53 bits: read as a
 * number, the identifier 8944110068765432109 would end in 432000.
 */
import type { Json } from './json.js';

/** The beginning of a text, or digits that may be more than a double can hold. */
const CANDIDATE = /"|\d{16,}/g;
/** What does not change an integer. */
const WHOLE_TAIL = /(?:\.0+)?(?:e[+-]?0+)?/iy;
/** An integer with fewer digits is exact. */
const LONG_DIGITS = 16;

/** Like JSON.parse; integers that a double cannot hold become text. */
export function parseExactJson(text: string): unknown {
  return JSON.parse(hasLongDigits(text) ? quoteLongIntegers(text) : text);
}

/** Looks at every sixteenth character of a text without such digits: a regular expression takes ten times as long. */
function hasLongDigits(text: string): boolean {
  for (let end = LONG_DIGITS - 1; end < text.length; ) {
    let index = end;
    while (index > end - LONG_DIGITS && isDigit(text.charCodeAt(index))) index--;
    if (index === end - LONG_DIGITS) return true;
    end = index + LONG_DIGITS;
  }
  return false;
}

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

function quoteLongIntegers(text: string): string {
  let quoted = '';
  let copied = 0;
  CANDIDATE.lastIndex = 0;
  for (let found = CANDIDATE.exec(text); found !== null; found = CANDIDATE.exec(text)) {
    if (found[0] === '"') {
      CANDIDATE.lastIndex = endOfText(text, found.index);
      continue;
    }
    WHOLE_TAIL.lastIndex = CANDIDATE.lastIndex;
    WHOLE_TAIL.test(text);
    const end = WHOLE_TAIL.lastIndex;
    const begin = text[found.index - 1] === '-' ? found.index - 1 : found.index;
    if (!isInteger(text, begin, end) || Number.isSafeInteger(Number(found[0]))) continue;
    quoted += `${text.slice(copied, begin)}"${text.slice(begin, end)}"`;
    copied = end;
  }
  return copied === 0 ? text : quoted + text.slice(copied);
}

/** The index after the quotation mark that ends the text which begins at `begin`. */
function endOfText(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === '\\') slashes++;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}

/** Whether the digits are a whole value of JSON: no part of another number, no name of a member, no zero in front. */
function isInteger(text: string, begin: number, end: number): boolean {
  const first = text[begin] === '-' ? text[begin + 1] : text[begin];
  if (first === '0' || /[\w.+-]/.test(text[begin - 1] ?? '')) return false;
  for (let index = end; index < text.length; index++) {
    const next = text[index] as string;
    if (next === ' ' || next === '\n' || next === '\r' || next === '\t') continue;
    return index === end ? /[,\]}]/.test(next) : next !== ':';
  }
  return true;
}

/**
 * Parses a value that somebody typed, or that a device sent as plain text: JSON, or else text. Digits are a number only if the
 * number prints back as the same digits: 12E45678, 0012 and 1.10 are text. A plus in front of a number is a sign, unless it is
 * that of a telephone number.
 */
export function parseTypedValue(text: string): Json {
  let value: Json;
  try {
    value = parseExactJson(/^\+\d/.test(text) && !TELEPHONE.test(text) ? text.slice(1) : text) as Json;
    // In a list or an object, it would be sent as null.
    if (HUGE.test(text) && holdsInfinity(value)) return text;
  } catch {
    return text;
  }
  if (typeof value !== 'number') return typeof value === 'string' && !/^\s*"/.test(text) ? text : value;
  return String(value) === text.trim().replace(/^\+/, '') ? value : text;
}

/** What a number needs that no double can hold. */
const HUGE = /e\+?\d{3}|\d{300}/i;
const holdsInfinity = (value: Json): boolean =>
  typeof value === 'object' && value !== null
    ? Object.values(value).some(holdsInfinity)
    : Math.abs(Number(value)) === Number.POSITIVE_INFINITY && typeof value === 'number';

const TELEPHONE = /^\+\d{7,}$/;

/** Whether a number is what its source says: zeros at the end of a fraction say nothing, those in front do. */
export const isExactNumber = (value: number, source: string): boolean =>
  !TELEPHONE.test(source) &&
  !isRounded(source) &&
  String(value) === source.replace(/^\+/, '').replace(/\.0*$|(\.\d*[1-9])0+$/, '$1');

/** Whether the digits are an integer that a double would round. */
export const isRounded = (text: string): boolean =>
  /^[+-]?\d{16,}(?:\.0*)?$/.test(text) && !Number.isSafeInteger(Number(text));
