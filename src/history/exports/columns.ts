/** The columns of a table of packets, and the cells of one packet after the other. */
import { PACKET_FIELDS } from '../../core/packet-fields.js';
import type { PacketBatch } from '../../packets/packet-stream.js';
import { type JsonWriter, writeName, writeValue } from '../../platform/mongo/bson/json-writer.js';
import { eachMember, isSameBytes, nameAt } from '../../platform/mongo/bson/members.js';
import { BSON_TYPES, valueEnd } from '../../platform/mongo/bson/reader.js';

/** The last column: all fields without a column, as JSON. Parameters of devices never begin with an underscore. */
export const MORE = '_more';
const MAX_COLUMNS = 500;

/** The requested fields, or else those of every packet, the declared parameters, and further fields of the first packets. */
export function columnsOf(
  only: readonly string[] | null,
  declared: Iterable<string>,
  first: PacketBatch | null,
): readonly string[] {
  if (only !== null) return [...new Set(['_id', ...only])];
  const names = new Set<string>([...PACKET_FIELDS, ...declared]);
  for (const start of first?.starts ?? []) {
    eachMember(first?.memory as Uint8Array, start, (_type, nameStart, nameEnd) => {
      if (names.size < MAX_COLUMNS) names.add(nameAt(first?.memory as Uint8Array, nameStart, nameEnd));
    });
  }
  return [...names].slice(0, MAX_COLUMNS);
}

/** The column of a top-level member, and the rest of the path within its value. */
interface Target {
  readonly column: number;
  readonly rest: readonly string[];
}

interface KnownName {
  readonly bytes: Uint8Array;
  /** Null for members without a column. */
  readonly targets: readonly Target[] | null;
}

/** Finds the value of each column in a packet. */
export class Cells {
  readonly names: readonly string[];
  /** Whether all members without a column are collected. Otherwise the names are paths, and other members are left out. */
  readonly hasMore: boolean;
  /** By column: the BSON type of the value, 0 for none, and its offset. */
  readonly types: Uint8Array;
  readonly starts: Int32Array;
  /** Members without a column, four numbers each: the type, where the name begins and ends, and the offset of the value. */
  more: number[] = [];
  readonly #targets = new Map<string, Target[]>();
  /** The members of the previous packet in order: the next one nearly always has the same. */
  readonly #expected: KnownName[] = [];

  constructor(names: readonly string[], hasMore: boolean) {
    this.names = names;
    this.hasMore = hasMore;
    this.types = new Uint8Array(names.length);
    this.starts = new Int32Array(names.length);
    for (const [column, name] of names.entries()) {
      const [root = '', ...rest] = hasMore ? [name] : name.split('.');
      this.#targets.set(root, [...(this.#targets.get(root) ?? []), { column, rest }]);
    }
  }

  /** Reads the packet that begins at `start`. */
  read(memory: Uint8Array, start: number): void {
    this.types.fill(0);
    if (this.more.length > 0) this.more = [];
    let index = 0;
    eachMember(memory, start, (type, nameStart, nameEnd, valueStart) => {
      const expected = this.#expected[index];
      const known =
        expected !== undefined && isSameBytes(memory, nameStart, nameEnd, expected.bytes)
          ? expected
          : this.#know(index, memory, nameStart, nameEnd);
      index++;
      if (known.targets === null) {
        if (this.hasMore) this.more.push(type, nameStart, nameEnd, valueStart);
        return;
      }
      for (const target of known.targets) this.#place(target, memory, type, valueStart);
    });
  }

  #know(index: number, memory: Uint8Array, nameStart: number, nameEnd: number): KnownName {
    const targets = this.#targets.get(nameAt(memory, nameStart, nameEnd)) ?? null;
    const known = { bytes: memory.slice(nameStart, nameEnd), targets };
    if (index < MAX_COLUMNS) this.#expected[index] = known;
    return known;
  }

  #place({ column, rest }: Target, memory: Uint8Array, type: number, valueStart: number): void {
    if (rest.length === 0) {
      this.types[column] = type;
      this.starts[column] = valueStart;
      return;
    }
    if (type !== BSON_TYPES.DOCUMENT) return;
    const [name, ...further] = rest;
    eachMember(memory, valueStart, (innerType, nameStart, nameEnd, innerStart) => {
      if (nameAt(memory, nameStart, nameEnd) === name) {
        this.#place({ column, rest: further }, memory, innerType, innerStart);
      }
    });
  }
}

/** Appends members, as `Cells.more` has them, as a JSON object. */
export function appendMembers(writer: JsonWriter, memory: Uint8Array, members: readonly number[]): void {
  for (let index = 0; index < members.length; index += 4) {
    const [type = 0, nameStart = 0, nameEnd = 0, valueStart = 0] = members.slice(index, index + 4);
    writer.raw(index === 0 ? '{' : ',');
    const bytes = 16 + 6 * (valueEnd(memory, type, valueStart, memory.length) - nameStart);
    writer.append(bytes, (json, start) => {
      const value = writeName(json, start, memory, nameStart, nameEnd);
      return writeValue(json, value, type, memory, valueStart);
    });
  }
  writer.raw('}');
}
