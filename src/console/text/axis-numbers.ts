/** The form of the numbers of an axis, which differ by less than they are. */
import { formOf, MOST_PLAIN } from './numbers.js';

const LEAST_PLAIN_STEP = 1e-9;
/** Those of `Intl`. */
const MOST_DIGITS = 21;

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
  return { notation: 'scientific', maximumSignificantDigits: Math.min(MOST_DIGITS, digits) };
}
