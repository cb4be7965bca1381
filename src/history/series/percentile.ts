/** Percentiles of many values, exact, in slices: each turn looks at a bounded number of them. Pure. */

/** How many values are sorted at once. */
const SORTED_VALUES = 10_000;
const SLICE = 65_536;
const DIGITS = 4;
const DIGIT_BITS = 16;

/** The value that so large a share of the others is below, between two of them if need be; as PERCENTILE.INC of spreadsheets. */
export function* findPercentile(values: Float64Array, share: number): Generator<void, number> {
  if (values.length <= SORTED_VALUES) values.sort();
  const place = (values.length - 1) * share;
  const low = Math.floor(place);
  const part = place % 1;
  const below = yield* findNth(values, low);
  return part === 0 ? below : below + part * ((yield* findNth(values, low + 1)) - below);
}

/** The value at this place of their order, in time that does not depend on their order. */
function* findNth(values: Float64Array, nth: number): Generator<void, number> {
  if (values.length <= SORTED_VALUES) return values[nth] as number;
  const halves = new Int32Array(values.buffer, values.byteOffset, 2 * values.length);
  const known: number[] = [];
  let left = nth;
  // Of all values that begin with the digits that are known, the next digit is found.
  while (known.length < DIGITS) {
    const counts = new Uint32Array(1 << DIGIT_BITS);
    for (let index = 0; index < values.length; index++) {
      if (index % SLICE === SLICE - 1) yield;
      if (!known.every((digit, place) => digitOf(halves, index, place) === digit)) continue;
      const digit = digitOf(halves, index, known.length);
      counts[digit] = (counts[digit] as number) + 1;
    }
    let digit = 0;
    for (; left >= (counts[digit] as number); digit++) left -= counts[digit] as number;
    known.push(digit);
  }
  return fromDigits(known);
}

/** A digit of a value such that the order of digits is the order of values. */
function digitOf(halves: Int32Array, index: number, place: number): number {
  const high = halves[2 * index + 1] as number;
  const half = place < 2 ? high : (halves[2 * index] as number);
  const ordered = high < 0 ? ~half : place < 2 ? half ^ 0x80_00_00_00 : half;
  return place % 2 === 0 ? ordered >>> DIGIT_BITS : ordered & 0xff_ff;
}

function fromDigits(digits: readonly number[]): number {
  const [a, b, c, d] = digits as [number, number, number, number];
  const high = (a << DIGIT_BITS) | b;
  const low = (c << DIGIT_BITS) | d;
  const halves = a & 0x80_00 ? Int32Array.of(low, high ^ 0x80_00_00_00) : Int32Array.of(~low, ~high);
  return new Float64Array(halves.buffer)[0] as number;
}
