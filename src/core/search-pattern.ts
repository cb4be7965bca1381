/** The search of lists: a regular expression for the database that accepts texts of the same folded form. */
import { fold } from './fold.js';

const ACCENT_CLASS = '[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff]*';

/** What folds: the letters of Latin, Greek, Cyrillic and their neighbours; ligatures; wide forms. */
const FOLDING = [
  [0x20, 0x58f],
  [0x10a0, 0x10ff],
  [0x1c80, 0x1cbf],
  [0x1d00, 0x1fff],
  [0x2c00, 0x2d2f],
  [0xa640, 0xa7ff],
  [0xfb00, 0xfb17],
  [0xff00, 0xffef],
  [0x10400, 0x104ff],
] as const;

/** The characters of each folded form, which has one or more characters. */
let unfolded: ReadonlyMap<string, readonly number[]> | undefined;

function findUnfolded(): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const [from, to] of FOLDING) {
    for (let code = from; code <= to; code++) {
      const character = String.fromCodePoint(code);
      const folded = fold(character);
      if (folded === '') continue;
      const codes = found.get(folded) ?? [];
      if (!found.has(folded)) found.set(folded, codes);
      codes.push(code);
    }
  }
  return found;
}

/** A regular expression (PCRE) for texts whose folded form contains the folded form of this text; null if that is empty. */
export function searchPattern(text: string): string | null {
  const folded = Array.from(fold(text));
  if (folded.length === 0) return null;
  unfolded ??= findUnfolded();
  const maxChain = folded.length <= SHORT_TEXT ? 6 : 3;
  let pattern = '';
  for (let index = 0; index < folded.length; ) {
    const end = chainEnd(folded, index, maxChain);
    pattern += waysOf(folded, index, end);
    index = end;
  }
  return pattern;
}

/**
 * Letters in a row of which each pair may be one character, such as `sss` or `sth`, are written out in all ways: six of them up to
 * this many letters, and three in a longer text, which would have too large a pattern.
 */
const SHORT_TEXT = 64;

const pairAt = (folded: readonly string[], index: number): readonly number[] | undefined =>
  index + 1 < folded.length ? unfolded?.get(`${folded[index]}${folded[index + 1]}`) : undefined;

function chainEnd(folded: readonly string[], index: number, maxChain: number): number {
  let end = index + 1;
  while (end - index < maxChain && pairAt(folded, end - 1) !== undefined) end++;
  return end;
}

/** Each letter by itself, or a pair of them as one character. */
function waysOf(folded: readonly string[], index: number, end: number): string {
  if (index >= end) return '';
  const one = classAt(folded, index) + ACCENT_CLASS + waysOf(folded, index + 1, end);
  const pair = index + 1 < end ? pairAt(folded, index) : undefined;
  return pair === undefined ? one : `(?:${one}|${toClass(pair)}${ACCENT_CLASS}${waysOf(folded, index + 2, end)})`;
}

/** The characters that fold to this one; at the ends also those of which it is a part, such as the `s` of `ß`. */
function classAt(folded: readonly string[], index: number): string {
  const character = folded[index] as string;
  const codes = [character.codePointAt(0) as number, ...(unfolded?.get(character) ?? [])];
  const isFirst = index === 0;
  const isLast = index === folded.length - 1;
  if (isFirst || isLast) {
    for (const [form, others] of unfolded ?? []) {
      if (form.length < 2) continue;
      if ((isFirst && form.endsWith(character)) || (isLast && form.startsWith(character))) codes.push(...others);
    }
  }
  // Voiced kana and Korean syllables may be stored decomposed.
  const decomposed = character.normalize('NFD');
  return decomposed === character ? toClass(codes) : `(?:${toClass(codes)}|${decomposed})`;
}

const escaped = (code: number): string =>
  code < 0x80 && !/\w/.test(String.fromCharCode(code))
    ? `\\x${code.toString(16).padStart(2, '0')}`
    : String.fromCodePoint(code);

/** Neighbours as a range, and letters as they are: MongoDB limits patterns to 32 KiB. */
function toClass(codes: readonly number[]): string {
  const sorted = [...new Set(codes)].sort((a, b) => a - b);
  if (sorted.length === 1) return escaped(sorted[0] as number);
  let text = '';
  for (let index = 0; index < sorted.length; index++) {
    const from = sorted[index] as number;
    while (sorted[index + 1] === (sorted[index] as number) + 1) index++;
    const to = sorted[index] as number;
    text += escaped(from) + (to > from ? `-${escaped(to)}` : '');
  }
  return `[${text}]`;
}
