/**
 * The keys of packets: the `_id` of the object once, and the packets' own `_id`s. Those that the service gave are a time, which the
 * stamps of the packets tell, a number of its process, and a counter. Those that devices chose are kept as they are, so that one
 * is found by comparing bytes.
 */
import { BSON_TYPES, int32, PACKET_KEY } from '../platform/mongo/bson/reader.js';
import { type ByteReader, ByteWriter, DamageError } from './bytes.js';
import { readIntegers, writeIntegers } from './integers.js';
import { readTexts, writeTexts } from './texts.js';

const { BYTES, SUBTYPE, OWN_BYTES } = PACKET_KEY;
const FORMS = { chosen: 0, given: 1 } as const;
/** Of an own `_id`: 4 bytes of seconds, 5 of a process, 3 of a counter. */
const PROCESS_AT = 4;
const COUNTER_AT = 9;
const HEADER_BYTES = 5;
const STAMPS_PER_SECOND = 1_000_000;

/** The own `_id`s in these binary values, in a row, and their object; null if there is another value among them. */
export function toKeys(values: readonly Buffer[]): { readonly object: Buffer; readonly ids: Buffer } | null {
  const object = values[0]?.subarray(HEADER_BYTES + OWN_BYTES);
  const areKeys = values.every(
    (value) =>
      value.length === HEADER_BYTES + BYTES &&
      int32(value, 0) === BYTES &&
      value[4] === SUBTYPE &&
      value.subarray(HEADER_BYTES + OWN_BYTES).equals(object as Buffer),
  );
  if (object === undefined || !areKeys) return null;
  return { object, ids: Buffer.concat(values.map((value) => value.subarray(HEADER_BYTES, HEADER_BYTES + OWN_BYTES))) };
}

/** `stamps` are those of the packets, in µs; null if some have none. */
export function writeKeys(out: ByteWriter, ids: Buffer, stamps: Float64Array | null): void {
  const given = toGiven(ids, stamps);
  if (given.length < ids.length) {
    out.byte(FORMS.given);
    out.bytes(given);
  } else {
    out.byte(FORMS.chosen);
    out.bytes(ids);
  }
}

function toGiven(ids: Buffer, stamps: Float64Array | null): Buffer {
  const count = ids.length / OWN_BYTES;
  const seconds = new Float64Array(count);
  const counters = new Float64Array(count);
  const processes: Buffer[] = [];
  for (let i = 0; i < count; i++) {
    const start = i * OWN_BYTES;
    seconds[i] = ids.readUInt32BE(start) - secondOf(stamps, i);
    processes.push(ids.subarray(start + PROCESS_AT, start + COUNTER_AT));
    counters[i] = ids.readUIntBE(start + COUNTER_AT, 3);
  }
  const out = new ByteWriter();
  out.byte(stamps === null ? 0 : 1);
  writeIntegers(out, seconds);
  writeTexts(out, processes);
  writeIntegers(out, counters);
  return out.finish();
}

const secondOf = (stamps: Float64Array | null, index: number): number =>
  stamps === null ? 0 : Math.floor((stamps[index] as number) / STAMPS_PER_SECOND);

export function readKeys(reader: ByteReader, count: number, stampsOf: () => Float64Array | null): Buffer {
  const form = reader.byte();
  if (form === FORMS.chosen) return reader.take(count * OWN_BYTES);
  if (form !== FORMS.given) throw new DamageError('an unknown form of keys');
  const stamps = reader.byte() === 1 ? stampsOf() : null;
  if (stamps !== null && stamps.length !== count) throw new DamageError('the stamps of the keys are missing');
  const seconds = readIntegers(reader, count);
  const processes = readTexts(reader, count);
  const counters = readIntegers(reader, count);
  const ids = Buffer.allocUnsafe(count * OWN_BYTES);
  for (let i = 0; i < count; i++) {
    const start = i * OWN_BYTES;
    const place = processes.places?.[i] ?? i;
    const from = processes.starts[place] as number;
    const second = (seconds[i] as number) + secondOf(stamps, i);
    if (!isIn(second, 2 ** 32) || !isIn(counters[i] as number, 2 ** 24)) throw new DamageError('a key is out of range');
    if ((processes.starts[place + 1] as number) - from !== COUNTER_AT - PROCESS_AT) {
      throw new DamageError('a key has another length');
    }
    ids.writeUInt32BE(second, start);
    processes.bytes.copy(ids, start + PROCESS_AT, from, from + COUNTER_AT - PROCESS_AT);
    ids.writeUIntBE(counters[i] as number, start + COUNTER_AT, 3);
  }
  return ids;
}

const isIn = (value: number, limit: number): boolean => value >= 0 && value < limit;

/** The place of an own `_id` among others; -1 if it is none of them. */
export function findKey(ids: Buffer, id: Buffer): number {
  for (let pos = ids.indexOf(id); pos !== -1; pos = ids.indexOf(id, pos + 1)) {
    if (pos % OWN_BYTES === 0) return pos / OWN_BYTES;
  }
  return -1;
}

/** Writes a key as a member that begins at `pos`, after its name; the space is there. */
export function writeKeyValue(
  out: Buffer,
  pos: number,
  { ids, object, nth }: { readonly ids: Buffer; readonly object: Buffer; readonly nth: number },
): number {
  out.writeInt32LE(BYTES, pos);
  out[pos + 4] = SUBTYPE;
  const at = pos + HEADER_BYTES;
  for (let i = 0; i < OWN_BYTES; i++) {
    out[at + i] = ids[nth * OWN_BYTES + i] as number;
    out[at + OWN_BYTES + i] = object[i] as number;
  }
  return pos + KEY_VALUE_BYTES;
}

export const KEY_VALUE_BYTES = HEADER_BYTES + BYTES;
export const KEY_TYPE = BSON_TYPES.BINARY;
