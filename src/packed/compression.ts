/**
 * Compresses a column if that pays: texts, documents and planes of bytes do, packed bits do not. With deflate, which every Node.js
 * has; the block compressor of the collection, zstd, sees the bucket once more.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { ByteReader, ByteWriter, DamageError } from './bytes.js';

const FORMS = { stored: 0, deflated: 1 } as const;
/** Smaller columns are stored. */
const SMALL_BYTES = 48;
/** What it must save of each byte, since it costs time to undo. */
const SAVED_SHARE = 1 / 16;

export function compress(bytes: Buffer): Buffer {
  const deflated = bytes.length < SMALL_BYTES ? null : deflateRawSync(bytes);
  const out = new ByteWriter();
  if (deflated !== null && deflated.length < bytes.length * (1 - SAVED_SHARE)) {
    out.byte(FORMS.deflated);
    out.varint(bytes.length);
    out.bytes(deflated);
  } else {
    out.byte(FORMS.stored);
    out.bytes(bytes);
  }
  return out.finish();
}

/** Never gives more than `maxBytes`, whatever the bytes say. */
export function decompress(bytes: Buffer, maxBytes: number): Buffer {
  const reader = new ByteReader(bytes);
  const form = reader.byte();
  if (form === FORMS.stored) return reader.take(reader.left);
  if (form !== FORMS.deflated) throw new DamageError('an unknown compression');
  const length = reader.varint(maxBytes);
  const inflated = inflate(reader.take(reader.left), length);
  if (inflated.length !== length) throw new DamageError('it decompresses to another length');
  return inflated;
}

function inflate(bytes: Buffer, maxOutputLength: number): Buffer {
  try {
    return inflateRawSync(bytes, { maxOutputLength: Math.max(1, maxOutputLength) });
  } catch (error) {
    throw new DamageError('it does not decompress', { cause: error });
  }
}
