/**
 * Streams of numbers. Sensors send decimals: 48.1635066 is the whole number 481635066 with a scale of seven digits, and its
 * neighbors differ little. A number without such a form is an exception, kept as its eight bytes. If most are, all bytes are kept
 * in planes: first the lowest byte of each number, then the next, so that what is common to them compresses.
 */
import { type ByteReader, ByteWriter, DamageError, WHOLE_MAX } from './bytes.js';
import { readIntegers, writeIntegers } from './integers.js';

const BYTES = 8;
const FORMS = {
  planes: 0,
  decimal: 1,
  /** Decimals that were a single-precision float on their way: 25.200000762939453 is 25.2. */
  single: 2,
  /** Differences from another column: times in µs from those in ms. */
  beside: 3,
} as const;
/** Up to 10^17 a number of 17 digits below 1 is found; powers of ten are exact up to 10^22. */
const SCALE_MAX = 17;
const POWERS = Float64Array.from({ length: SCALE_MAX + 1 }, (_, digits) => Number(`1e${digits}`));
/** What a further digit adds to each number. */
const DIGIT_BITS = Math.log2(10);
/** An exception: its bytes and its place. */
const EXCEPTION_BITS = 8 * BYTES + 12;
/** Above this size of a number, planes are smaller once they are compressed. */
const PLANES_BYTES = 6.5;
const FEW_BYTES = 16;
/** Below this size of a decimal, single precision is not tried. */
const PLAUSIBLE_BITS = 44;

/** Writes numbers bit by bit as they are, also -0 and each NaN. `beside` are numbers near to them that the reader has, too. */
export function writeDoubles(out: ByteWriter, values: Float64Array, beside: Float64Array | null = null): void {
  const scale = findScale(values);
  const forms = [
    scale === null ? null : toScaled(values, scale),
    scale?.isWhole === true && beside !== null ? toBeside(values, beside) : null,
  ];
  const [best] = forms.filter((form) => form !== null).sort((one, other) => one.length - other.length);
  if (best === undefined || best.length > PLANES_BYTES * values.length + FEW_BYTES) writePlanes(out, values);
  else out.bytes(best);
}

function toBeside(values: Float64Array, beside: Float64Array): Buffer | null {
  const differences = values.map((value, index) => value - (beside[index] as number));
  if (!differences.every((difference) => Math.abs(difference) < WHOLE_MAX)) return null;
  const out = new ByteWriter();
  out.byte(FORMS.beside);
  writeIntegers(out, differences);
  return out.finish();
}

interface Scale {
  readonly digits: number;
  readonly isSingle: boolean;
  readonly isWhole: boolean;
  /** An estimate of the whole stream. */
  readonly bits: number;
}

function findScale(values: Float64Array): Scale | null {
  const decimal = toScale(values, false);
  const single = decimal !== null && decimal.bits <= PLAUSIBLE_BITS * values.length ? null : toScale(values, true);
  if (decimal === null || single === null) return decimal ?? single;
  return single.bits < decimal.bits ? single : decimal;
}

/** The digits that cost the least: more of them widen every number, fewer make exceptions. */
function toScale(values: Float64Array, isSingle: boolean): Scale | null {
  const counts = new Uint32Array(SCALE_MAX + 1);
  let fitting = 0;
  let magnitude = 0;
  for (const value of values) {
    const digits = digitsOf(value, isSingle);
    if (digits === -1) continue;
    fitting++;
    counts[digits] = (counts[digits] as number) + 1;
    magnitude = Math.max(magnitude, Math.abs(value));
  }
  let best: Scale | null = null;
  let covered = 0;
  const ownBits = Math.log2(magnitude + 1);
  for (let digits = 0; digits <= SCALE_MAX; digits++) {
    covered += counts[digits] as number;
    const exceptions = values.length - covered;
    const bits = covered * (ownBits + digits * DIGIT_BITS) + exceptions * EXCEPTION_BITS;
    const isWhole = digits === 0 && exceptions === 0;
    if (covered > 0 && (best === null || bits < best.bits)) best = { digits, isSingle, isWhole, bits };
    if (covered === fitting) break;
  }
  return best;
}

/** The fewest digits that give the number back; -1 if there are none. */
function digitsOf(value: number, isSingle: boolean): number {
  if (isSingle && Math.fround(value) !== value) return -1;
  for (let digits = 0; digits <= SCALE_MAX; digits++) {
    const whole = Math.round(value * (POWERS[digits] as number));
    if (!(Math.abs(whole) < WHOLE_MAX)) return -1;
    if (isExact(value, whole, { digits, isSingle })) return digits;
  }
  return -1;
}

function isExact(value: number, whole: number, scale: Pick<Scale, 'digits' | 'isSingle'>): boolean {
  return Object.is(toDouble(whole + 0, scale), value);
}

/** The quotient of two exact numbers is the double nearest to the decimal: the one that its text is parsed to. */
function toDouble(whole: number, { digits, isSingle }: Pick<Scale, 'digits' | 'isSingle'>): number {
  const value = digits === 0 ? whole : whole / (POWERS[digits] as number);
  return isSingle ? Math.fround(value) : value;
}

function toScaled(values: Float64Array, scale: Scale): Buffer {
  const out = new ByteWriter();
  out.byte(scale.isSingle ? FORMS.single : FORMS.decimal);
  out.byte(scale.digits);
  const wholes = new Float64Array(values.length);
  const exceptions: number[] = [];
  let last = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    // -0 becomes 0, and is then no exact form of itself.
    const whole = Math.round(value * (POWERS[scale.digits] as number)) + 0;
    if (Math.abs(whole) < WHOLE_MAX && isExact(value, whole, scale)) last = whole;
    else exceptions.push(i);
    wholes[i] = last;
  }
  out.varint(exceptions.length);
  writeIntegers(out, Float64Array.from(exceptions));
  const bytes = bytesOf(values);
  for (const index of exceptions) out.bytes(bytes.subarray(index * BYTES, (index + 1) * BYTES));
  writeIntegers(out, wholes);
  return out.finish();
}

const bytesOf = (values: Float64Array): Uint8Array =>
  new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

function writePlanes(out: ByteWriter, values: Float64Array): void {
  out.byte(FORMS.planes);
  const bytes = bytesOf(values);
  const planes = out.space(bytes.length);
  for (let i = 0; i < bytes.length; i++) {
    planes[(i % BYTES) * values.length + Math.floor(i / BYTES)] = bytes[i] as number;
  }
}

export function readDoubles(reader: ByteReader, count: number, beside: () => Float64Array | null): Float64Array {
  const form = reader.byte();
  if (form === FORMS.planes) return readPlanes(reader, count);
  if (form === FORMS.beside) return readBeside(reader, count, beside());
  if (form !== FORMS.decimal && form !== FORMS.single) throw new DamageError('an unknown form of decimals');
  const digits = reader.byte();
  if (digits > SCALE_MAX) throw new DamageError('a decimal has too many digits');
  return readScaled(reader, count, { digits, isSingle: form === FORMS.single });
}

function readPlanes(reader: ByteReader, count: number): Float64Array {
  const planes = reader.take(count * BYTES);
  const values = new Float64Array(count);
  const bytes = bytesOf(values);
  for (let i = 0; i < bytes.length; i++) {
    bytes[i] = planes[(i % BYTES) * count + Math.floor(i / BYTES)] as number;
  }
  return values;
}

function readBeside(reader: ByteReader, count: number, beside: Float64Array | null): Float64Array {
  if (beside?.length !== count) throw new DamageError('the numbers beside it are missing');
  const values = readIntegers(reader, count);
  for (let i = 0; i < count; i++) values[i] = (values[i] as number) + (beside[i] as number);
  return values;
}

function readScaled(reader: ByteReader, count: number, scale: Pick<Scale, 'digits' | 'isSingle'>): Float64Array {
  const exceptions = readIntegers(reader, reader.varint(count));
  const kept = reader.take(exceptions.length * BYTES);
  const values = readIntegers(reader, count);
  if (scale.digits > 0 || scale.isSingle) {
    for (let i = 0; i < count; i++) values[i] = toDouble(values[i] as number, scale);
  }
  const bytes = bytesOf(values);
  for (const [nth, index] of exceptions.entries()) {
    if (!(index >= 0 && index < count)) throw new DamageError('an exception is outside its column');
    bytes.set(kept.subarray(nth * BYTES, (nth + 1) * BYTES), index * BYTES);
  }
  return values;
}
