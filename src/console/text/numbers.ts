/** The forms of numbers, so that measured values of every size can be read and told apart. */

const SCIENTIFIC = 'scientific';
const LEAST_PLAIN = 1e-6;
const MOST_PLAIN = 1e15;
const LEAST_PLAIN_STEP = 1e-9;
const SMALL: Intl.NumberFormatOptions = { maximumSignificantDigits: 4 };
const EXTREME: Intl.NumberFormatOptions = { ...SMALL, notation: SCIENTIFIC };
const USUAL: Intl.NumberFormatOptions = { maximumFractionDigits: 2 };
/** Those of `Intl`. */
const MOST_DIGITS = 21;

/** The form of a single number. */
export function formOf(value: number): Intl.NumberFormatOptions {
  const size = Math.abs(value);
  if (size === 0) return USUAL;
  if (size < LEAST_PLAIN || size >= MOST_PLAIN) return EXTREME;
  return size < 1 ? SMALL : USUAL;
}

/** The form of the marks of an axis, with the digits in which they differ. */
export function formOnAxis(marks: readonly number[]): Intl.NumberFormatOptions {
  const [first = 0, second] = marks;
  if (second === undefined) return formOf(first);
  const step = Math.abs(second - first);
  const most = Math.max(...marks.map(Math.abs));
  // One more digit than the step has places, for steps of 2.5.
  const places = 1 - Math.floor(Math.log10(step));
  if (step >= LEAST_PLAIN_STEP && most < MOST_PLAIN) return { maximumFractionDigits: Math.max(0, places) };
  const digits = places + Math.floor(Math.log10(most)) + 1;
  return { notation: SCIENTIFIC, maximumSignificantDigits: Math.min(MOST_DIGITS, digits) };
}
