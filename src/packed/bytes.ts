/** Writes and reads the bytes of packed history. Every read is checked against the end. */

/** Thrown for bytes that no packing has written. */
export class DamageError extends Error {}

/** The largest whole number of a stream: twice as much is still exact. */
export const WHOLE_MAX = 2 ** 52;
const FIRST_BYTES = 512;
const VARINT_BYTES = 8;
const SEVEN_BITS = 2 ** 7;

/** Maps whole numbers to those from 0 on, small ones to small ones. */
export const toUnsigned = (value: number): number => (value < 0 ? -2 * value - 1 : 2 * value);
export const toSigned = (value: number): number => (value % 2 === 0 ? value / 2 : -(value + 1) / 2);

export class ByteWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  byte(value: number): void {
    this.#ensure(1);
    this.#bytes[this.#length++] = value;
  }

  /** A whole number from 0 to 2^53, seven bits in each byte. */
  varint(value: number): void {
    this.#ensure(VARINT_BYTES);
    let left = value;
    for (; left >= SEVEN_BITS; left = Math.floor(left / SEVEN_BITS)) {
      this.#bytes[this.#length++] = (left % SEVEN_BITS) | SEVEN_BITS;
    }
    this.#bytes[this.#length++] = left;
  }

  signed(value: number): void {
    this.varint(toUnsigned(value));
  }

  uint32(value: number): void {
    this.#ensure(4);
    this.#length = this.#bytes.writeUInt32LE(value, this.#length);
  }

  double(value: number): void {
    this.#ensure(8);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
  }

  bytes(bytes: Uint8Array): void {
    this.space(bytes.length).set(bytes);
  }

  /** Bytes with their length before them. */
  block(bytes: Uint8Array): void {
    this.varint(bytes.length);
    this.bytes(bytes);
  }

  /** Bytes to be filled at once. */
  space(bytes: number): Buffer {
    this.#ensure(bytes);
    this.#length += bytes;
    return this.#bytes.subarray(this.#length - bytes, this.#length);
  }

  /** A copy of what was written. */
  finish(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#length));
  }

  #ensure(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.#length + bytes));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

export class ByteReader {
  readonly #bytes: Buffer;
  #pos = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#pos;
  }

  byte(): number {
    if (this.#pos >= this.#bytes.length) throw new DamageError('it ends too early');
    return this.#bytes[this.#pos++] as number;
  }

  varint(max = 2 * WHOLE_MAX): number {
    let value = 0;
    for (let factor = 1; ; factor *= SEVEN_BITS) {
      const byte = this.byte();
      value += (byte % SEVEN_BITS) * factor;
      if (value > max) throw new DamageError('a number is too large');
      if (byte < SEVEN_BITS) return value;
      if (factor > WHOLE_MAX) throw new DamageError('a number is too long');
    }
  }

  signed(): number {
    return toSigned(this.varint());
  }

  uint32(): number {
    return this.take(4).readUInt32LE();
  }

  double(): number {
    return this.take(8).readDoubleLE();
  }

  block(): Buffer {
    return this.take(this.varint());
  }

  /** A view of the next bytes. */
  take(bytes: number): Buffer {
    if (bytes > this.left) throw new DamageError('it ends too early');
    this.#pos += bytes;
    return this.#bytes.subarray(this.#pos - bytes, this.#pos);
  }

  end(): void {
    if (this.left > 0) throw new DamageError('it ends too late');
  }
}
