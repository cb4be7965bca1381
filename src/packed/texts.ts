/** Streams of values as bytes, of which equal ones are kept once if there are many. */
import { type ByteReader, type ByteWriter, DamageError } from './bytes.js';
import { readIntegers, writeIntegers } from './integers.js';

const FORMS = { plain: 0, dictionary: 1 } as const;
/** Above this share of different values, a dictionary saves nothing. */
const DIFFERENT_SHARE = 0.5;

/** Values as bytes. */
export interface Texts {
  readonly bytes: Buffer;
  /** Where each different value begins; one more than there are. */
  readonly starts: Float64Array;
  /** The place of each value in `starts`; null where all are different. */
  readonly places: Float64Array | null;
}

export function writeTexts(out: ByteWriter, values: readonly Buffer[]): void {
  const places = new Map<string, number>();
  const different: Buffer[] = [];
  const indexes = Float64Array.from(values, (value) => {
    const text = value.toString('latin1');
    const known = places.get(text);
    if (known !== undefined) return known;
    places.set(text, different.length);
    return different.push(value) - 1;
  });
  const repeats = values.length > 1 && different.length <= Math.max(1, values.length * DIFFERENT_SHARE);
  out.byte(repeats ? FORMS.dictionary : FORMS.plain);
  if (repeats) out.varint(different.length);
  writePlain(out, repeats ? different : values);
  if (repeats) writeIntegers(out, indexes);
}

function writePlain(out: ByteWriter, values: readonly Buffer[]): void {
  writeIntegers(
    out,
    Float64Array.from(values, ({ length }) => length),
  );
  for (const value of values) out.bytes(value);
}

export function readTexts(reader: ByteReader, count: number): Texts {
  const form = reader.byte();
  if (form === FORMS.plain) return { ...readPlain(reader, count), places: null };
  if (form !== FORMS.dictionary) throw new DamageError('an unknown form of texts');
  const different = reader.varint(count);
  const { bytes, starts } = readPlain(reader, different);
  const places = readIntegers(reader, count);
  for (const place of places) if (!(place >= 0 && place < different)) throw new DamageError('a text is missing');
  return { bytes, starts, places };
}

function readPlain(reader: ByteReader, count: number): Pick<Texts, 'bytes' | 'starts'> {
  const lengths = readIntegers(reader, count);
  const starts = new Float64Array(count + 1);
  for (let i = 0; i < count; i++) {
    const length = lengths[i] as number;
    if (!(length >= 0 && length <= reader.left)) throw new DamageError('a text has no such length');
    starts[i + 1] = (starts[i] as number) + length;
  }
  return { bytes: reader.take(starts[count] as number), starts };
}
