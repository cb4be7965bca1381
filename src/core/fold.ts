/**
 * Text as people compare it when they search: without case and accents, `ß` as `ss`, the Turkish `İ` and `ı` as `i`. Lists of the
 * service follow the same rule (`search-pattern.ts`).
 */

// Accents of Latin, Greek and Cyrillic. Vowel signs and voicing marks of other scripts make other letters.
const ACCENTS = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff]/g;

/** Letters that are not composed in Unicode, as people without their keyboard write them. */
const PLAIN: ReadonlyMap<string, string> = new Map([
  ['æ', 'ae'],
  ['œ', 'oe'],
  ['ø', 'o'],
  ['đ', 'd'],
  ['ð', 'd'],
  ['ħ', 'h'],
  ['ł', 'l'],
  ['ŧ', 't'],
  ['þ', 'th'],
  ['ĳ', 'ij'],
  ['ς', 'σ'],
]);

/** The folded form of a text. Texts that differ only in case and accents have the same. */
export function fold(text: string): string {
  if (isAscii(text)) return text.toLowerCase();
  const plain = plainOf(text);
  return isAscii(plain) ? plain.toLowerCase() : Array.from(plain, foldCharacter).join('');
}

/** The usual case, which is quick. */
const isAscii = (text: string): boolean => /^[\n -~]*$/.test(text);

/** Without accents; Korean syllables stay composed. */
const plainOf = (text: string): string => text.normalize('NFD').replace(ACCENTS, '').normalize('NFC');

function foldCharacter(character: string): string {
  const isWide = character >= '\uff00' && character <= '\uffef';
  const plain = isWide ? character.normalize('NFKC') : character;
  // Upper case resolves ß, ı and ligatures; lower case before it resolves ẞ.
  const lower = plain.toLowerCase().toUpperCase().toLowerCase();
  return PLAIN.get(lower) ?? lower;
}
