/** Finds where a text stops being JSON (RFC 8259): the errors of JSON.parse say so only for some faults. */
import { LIMITS } from './limits.js';

const SPACE = /[ \t\n\r]*/y;
const TEXT = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** What may come next: `first` also permits the end of an empty list or object. */
type Expected = 'value' | 'first value' | 'name' | 'first name' | 'colon' | 'comma';

const CLOSING: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/**
 * The index of the first character that cannot be there, or of the value that it is in; the length of a text that ends too early. Null
 * for JSON, and for a text that is too long to be looked through.
 */
export function findJsonFault(text: string): number | null {
  if (text.length > LIMITS.bigBodyBytes) return null;
  /** The ends of the lists and objects that are open. */
  const open: string[] = [];
  let expected: Expected = 'value';
  for (let at = endOf(SPACE, text, 0) ?? 0; ; at = endOf(SPACE, text, at) ?? at) {
    const character = text[at];
    if (expected === 'comma' && open.length === 0) return character === undefined ? null : at;
    if (character === undefined) return at;
    const isName: boolean = expected === 'name' || expected === 'first name';
    const isValue: boolean = expected === 'value' || expected === 'first value';
    const mayClose: boolean = expected === 'comma' || expected.startsWith('first');
    if (mayClose && character === open.at(-1)) {
      open.pop();
      expected = 'comma';
    } else if (expected === 'comma' && character === ',') {
      expected = open.at(-1) === '}' ? 'name' : 'value';
    } else if (expected === 'colon' && character === ':') {
      expected = 'value';
    } else if (isValue && CLOSING[character] !== undefined) {
      open.push(CLOSING[character]);
      expected = character === '{' ? 'first name' : 'first value';
    } else {
      const isText = character === '"' && (isName || isValue);
      const end = isText ? endOf(TEXT, text, at) : isValue ? endOf(SCALAR, text, at) : null;
      if (end === null) return at;
      expected = isName ? 'colon' : 'comma';
      at = end - 1;
    }
    at++;
  }
}

/** Where the match that begins at `at` ends; null for none. */
function endOf(pattern: RegExp, text: string, at: number): number | null {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : null;
}
