/** Own ids: the names that owners give their objects. */

/** The form of an `_id`. */
export const ID = /^[0-9a-f]{24}$/i;

/** Browsers and other URL parsers remove these segments from a path (RFC 3986, 5.2.4), even percent-encoded. */
const isDotSegment = (name: string): boolean => name === '.' || name === '..';

// Line breaks and tabs are control characters, which are refused.
// Nobody sees the others either, which come along when a text is copied: soft hyphens, zero widths, marks of direction, fillers.
const BLANK =
  /[\p{Z}\u00ad\u115f\u1160\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\u2800\u3164\ufeff\uffa0]/u;

/** Looks at each character once: a pattern for the blanks at the end takes the square of the count of inner ones. */
function withoutOuterBlanks(text: string): string {
  let begin = 0;
  let end = text.length;
  while (begin < end && BLANK.test(text.charAt(begin))) begin++;
  while (begin < end && BLANK.test(text.charAt(end - 1))) end--;
  return text.slice(begin, end);
}

/**
 * The form of an own id that is stored and looked up: in NFC, as keyboards and file systems differ in how they write accents, and
 * without blanks around it.
 */
export const toOwnId = (text: string): string => withoutOuterBlanks(text).normalize('NFC');

/** Whether a stored own id can name an object: not the wildcard `*`, not the form of an `_id`, not blank, not removed from paths. */
export function isValidOwnId(ownId: string): boolean {
  if (ownId.trim() === '' || toOwnId(ownId) !== ownId || !ownId.isWellFormed()) return false;
  return ownId !== '*' && !isDotSegment(ownId) && !ID.test(ownId);
}
