/** The forms of numbers, so that measured values of every size can be read and told apart. */

const LEAST_PLAIN = 1e-6;
export const MOST_PLAIN = 1e15;
const SMALL: Intl.NumberFormatOptions = { maximumSignificantDigits: 4 };
const EXTREME: Intl.NumberFormatOptions = { ...SMALL, notation: 'scientific' };
const USUAL: Intl.NumberFormatOptions = { maximumFractionDigits: 2 };

/** The form of a single number. */
export function formOf(value: number): Intl.NumberFormatOptions {
  const size = Math.abs(value);
  if (size === 0) return USUAL;
  if (size < LEAST_PLAIN || size >= MOST_PLAIN) return EXTREME;
  return size < 1 ? SMALL : USUAL;
}
