/** Packets that are merged out of several sources, in batches like those of a reply of the database. */
import type { Documents } from '../../platform/mongo/bson/document-batch.js';
import { eachMember, nameAt } from '../../platform/mongo/bson/members.js';
import { documentAt, int32, valueEnd } from '../../platform/mongo/bson/reader.js';
import type { Segment } from './merge.js';

export interface Batching {
  readonly skip: number;
  /** Null for all. */
  readonly limit: number | null;
  readonly batchPackets: number;
  /** The top-level fields of each packet that are left out: they were read for the order alone. */
  readonly dropped: ReadonlySet<string>;
}

/** The size of the largest reply of the database. */
const BATCH_BYTES = 16 * 2 ** 20;

/** Batches of the packets, in their order, and as large as the database makes them: who exports them takes the fields of the first one. */
export async function* toBatches(
  segments: AsyncGenerator<Segment>,
  { skip, limit, batchPackets, dropped }: Batching,
): AsyncGenerator<Documents> {
  let toSkip = skip;
  let left = limit ?? Number.POSITIVE_INFINITY;
  const batch = new Batch(batchPackets, dropped);
  if (left === 0) return;
  for await (const { run, from, to } of segments) {
    const begin = Math.min(to, from + toSkip);
    toSkip -= begin - from;
    const end = Math.min(to, begin + left);
    left -= end - begin;
    for (let at = begin; at < end; ) {
      at = batch.add(run, at, end);
      if (batch.isFull || at < end) yield batch.take();
    }
    if (left === 0) break;
  }
  if (!batch.isEmpty) yield batch.take();
}

/** Packets that wait until they are enough. */
export class Batch {
  readonly #packets: number;
  readonly #dropped: ReadonlySet<string>;
  #parts: Segment[] = [];
  #count = 0;
  #bytes = 0;

  constructor(packets: number, dropped: ReadonlySet<string>) {
    this.#packets = packets;
    this.#dropped = dropped;
  }

  get isFull(): boolean {
    return this.#count >= this.#packets;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Adds packets as long as there is space; returns the first one for which there is none. */
  add(run: Segment['run'], from: number, end: number): number {
    let to = from;
    for (; to < end && !this.isFull; to++) {
      const bytes = int32(run.memory, run.starts[to] as number);
      if (this.#count > 0 && this.#bytes + bytes > BATCH_BYTES) break;
      this.#count++;
      this.#bytes += bytes;
    }
    if (to > from) this.#parts.push({ run, from, to });
    return to;
  }

  take(): Documents {
    const documents = toDocuments(this.#parts, this.#bytes, this.#dropped);
    this.#parts = [];
    this.#count = 0;
    this.#bytes = 0;
    return documents;
  }
}

function toDocuments(parts: readonly Segment[], bytes: number, dropped: ReadonlySet<string>): Documents {
  const [first, ...others] = parts as [Segment];
  if (others.length === 0 && dropped.size === 0) {
    const starts = Array.from(
      { length: first.to - first.from },
      (_, nth) => first.run.starts[first.from + nth] as number,
    );
    return new MemoryDocuments(first.run.memory, starts);
  }
  const memory = Buffer.allocUnsafe(bytes);
  const starts: number[] = [];
  let pos = 0;
  for (const { run, from, to } of parts) {
    for (let at = from; at < to; at++) {
      starts.push(pos);
      pos = copyWithout(run.memory, run.starts[at] as number, { to: memory, pos, dropped });
    }
  }
  return new MemoryDocuments(memory.subarray(0, pos), starts);
}

/** Copies a document without some of its members; returns its end. */
function copyWithout(
  memory: Buffer,
  start: number,
  { to, pos: begin, dropped }: { readonly to: Buffer; readonly pos: number; readonly dropped: ReadonlySet<string> },
): number {
  const end = start + int32(memory, start);
  if (dropped.size === 0) return begin + memory.copy(to, begin, start, end);
  let pos = begin + 4;
  eachMember(memory, start, (type, nameStart, nameEnd, value) => {
    if (dropped.has(nameAt(memory, nameStart, nameEnd))) return;
    pos += memory.copy(to, pos, nameStart - 1, valueEnd(memory, type, value, end - 1));
  });
  to[pos] = 0;
  to.writeInt32LE(pos + 1 - begin, begin);
  return pos + 1;
}

class MemoryDocuments implements Documents {
  readonly memory: Buffer;
  readonly #starts: readonly number[];
  /** The place of the document that `next` has given last. */
  #nth = 0;

  constructor(memory: Buffer, starts: readonly number[]) {
    this.memory = memory;
    this.#starts = starts;
  }

  get bytes(): number {
    return this.#starts.reduce((sum, start) => sum + int32(this.memory, start), 0);
  }

  first(): number {
    this.#nth = 0;
    return this.#starts[0] ?? -1;
  }

  next(start: number): number {
    if (this.#starts[this.#nth] !== start) this.#nth = this.#starts.indexOf(start);
    return this.#starts[++this.#nth] ?? -1;
  }

  starts(): number[] {
    return [...this.#starts];
  }

  get documents(): Buffer[] {
    return this.#starts.map((start) => documentAt(this.memory, start));
  }
}
