/**
 * Reads the packets of an object for whoever takes numbers out of them. Of a bucket that is read whole, and that no row lies in, it gives
 * the statistics in its head, or the columns of these numbers: both cost a small part of what its packets cost.
 */
import { LIMITS } from '../../core/limits.js';
import type { PlaceInOrder } from '../../core/packet-order.js';
import { readHead } from '../../packed/head.js';
import type { NumberStatistics, Statistics } from '../../packed/statistics.js';
import { BucketReader } from '../../packed/unpack.js';
import { ColumnValues } from '../../packed/values.js';
import { clock } from '../../platform/clock.js';
import type { Documents } from '../../platform/mongo/bson/document-batch.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { type BucketReading, numbersOf, openBucket, readBuckets, toSelector } from './bucket-runs.js';
import type { StoredBucket, StoredSpan } from './buckets.js';
import { readForClient } from './damaged-buckets.js';
import { comparePlaces, mergeRuns, type Run } from './merge.js';
import { mayHaveBuckets } from './packed-history.js';
import { closeAll, findPacked, type PackedReading, rowRuns, toBucketReading } from './packed-reading.js';
import { Batch } from './packet-documents.js';
import { type PacketReading, type Range, toFind } from './query.js';
import { readPackets } from './reader.js';

/** What is read, in ascending order of time. */
export interface PartReading extends Pick<PacketReading, 'objectIds' | 'time' | 'start' | 'fields' | 'batchPackets'> {
  /** The fields whose numbers are wanted. */
  readonly numbers: readonly string[];
  /** Whether statistics are enough of packets between these times, both included. */
  readonly isSummedUp: (fromMs: number, toMs: number) => boolean;
  /** Whether it must be known when the last number was sent: then each packet must have one. */
  readonly needsLastTime: boolean;
}

/** The numbers of one field. */
export interface NumbersOfField {
  /** The number of the packet of each. */
  readonly rows: Uint32Array;
  /** NaN for null. */
  readonly numbers: Float64Array;
}

export interface PacketsPart {
  readonly kind: 'packets';
  readonly memory: Buffer;
  /** Where each packet begins. */
  readonly starts: readonly number[];
  /** The place of the last one, if the packets do not have it. */
  readonly last: PlaceInOrder | null;
}

export interface ColumnsPart {
  readonly kind: 'columns';
  readonly last: PlaceInOrder;
  readonly times: Float64Array;
  /** Null for a field that none of the packets has. */
  readonly fields: readonly (NumbersOfField | null)[];
}

export interface StatisticsPart {
  readonly kind: 'statistics';
  readonly last: PlaceInOrder;
  /** The times of the first and the last packet. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Null for a field without values. */
  readonly fields: readonly (NumberStatistics | null)[];
}

/** Packets of an object, in their order. */
export type HistoryPart = PacketsPart | ColumnsPart | StatisticsPart;

/** All packets of the query, part by part. */
export async function* readParts(
  database: Database,
  reading: PartReading,
  options: BatchOptions,
): AsyncGenerator<HistoryPart> {
  const { numbers, isSummedUp, needsLastTime, ...packets } = reading;
  // A nested number is in a column of documents.
  if (numbers.some(isNotInColumns) || !(await mayHaveBuckets(database))) {
    for await (const batch of readPackets(database, packets, options)) yield toPart(batch);
    return;
  }
  const spansRead = LIMITS.bucketHeadsRead;
  const { snapshot, found } = await findPacked({ database, options, query: packets, isDescending: false, spansRead });
  try {
    const packed = { database, reading: packets, options, snapshot, found };
    const buckets = found.map((some) => partRuns(packed, reading, some.spans));
    const rows = rowRuns(rawBatches(database, { ...toFind(packets), ...snapshot }, options));
    const batch = new Batch(packets.batchPackets ?? LIMITS.streamBatchPackets, new Set());
    for await (const some of mergeRuns<WholeBucket>([...buckets, rows], false)) {
      if ('read' in some) {
        if (!batch.isEmpty) yield toPart(batch.take());
        yield await some.read();
        continue;
      }
      for (let at = some.from; at < some.to; ) {
        at = batch.add(some.run, at, some.to);
        if (batch.isFull || at < some.to) yield toPart(batch.take());
      }
    }
    if (!batch.isEmpty) yield toPart(batch.take());
  } finally {
    await closeAll(found);
  }
}

/** Packets as they are stored. */
export const toPart = (packets: Documents): PacketsPart => ({
  kind: 'packets',
  memory: packets.memory,
  starts: packets.starts(),
  last: null,
});

/** Fields that heads have no statistics of. */
const NOT_IN_COLUMNS: ReadonlySet<string> = new Set(['_id', '_ts', 'time', '_oid', 'id', '_gid']);
const isNotInColumns = (path: string): boolean => path.includes('.') || NOT_IN_COLUMNS.has(path);

/** A bucket whose packets are all wanted, and that no other packets lie in. */
interface WholeBucket {
  readonly read: () => Promise<HistoryPart>;
}

/** The buckets of an object. Those that are read whole are fetched in groups, although others lie between them. */
async function* partRuns(
  packed: PackedReading,
  reading: PartReading,
  spans: AsyncGenerator<StoredSpan[]>,
): AsyncGenerator<Run<WholeBucket>> {
  const reader = new PartReader(packed, reading);
  for await (const { some, next } of withNext(spans)) {
    const groups = new Map<HistoryPart['kind'], Group>();
    const runs = some.map((span, nth) => {
      const kind = reader.kindOf(span, some[nth + 1] ?? next);
      let group = groups.get(kind);
      if (group === undefined || group.spans.length === group.most) {
        group = { kind, spans: [], most: reader.atOnce(kind), reading: null };
        groups.set(kind, group);
      }
      group.spans.push(span);
      return toPartRun(reader, group, span);
    });
    yield* runs;
  }
}

/** Buckets that are fetched at once, when the first of them is wanted. */
interface Group {
  readonly kind: HistoryPart['kind'];
  readonly spans: StoredSpan[];
  readonly most: number;
  reading: Promise<Map<string, StoredBucket>> | null;
}

function toPartRun(reader: PartReader, group: Group, span: StoredSpan): Run<WholeBucket> {
  const run = { first: span.from, open: () => reader.open(span) };
  const { kind } = group;
  if (kind === 'packets') return run;
  const read = async (): Promise<HistoryPart> => {
    group.reading ??= reader.fetch(kind, group.spans);
    return reader.read(kind, span, await group.reading);
  };
  return { ...run, whole: { last: span.to, given: { read } } };
}

/** Each batch, with the first one of the next batch. */
async function* withNext(
  spans: AsyncGenerator<StoredSpan[]>,
): AsyncGenerator<{ readonly some: readonly StoredSpan[]; readonly next: StoredSpan | null }> {
  let before: StoredSpan[] = [];
  for await (const some of spans) {
    if (before.length > 0) yield { some: before, next: some[0] ?? null };
    before = some;
  }
  yield { some: before, next: null };
}

/** Reads buckets of an object in the form in which they cost least. */
class PartReader {
  readonly #packed: PackedReading;
  readonly #reading: PartReading;
  readonly #buckets: BucketReading;
  readonly #names: ReadonlySet<string>;
  readonly #snapshot: PackedReading['snapshot'];
  /** Until a head was not enough. */
  #hasStatistics = true;
  #columnsAtOnce = 1;

  constructor(packed: PackedReading, reading: PartReading) {
    this.#packed = packed;
    this.#reading = reading;
    this.#buckets = toBucketReading(packed, packed.reading.fields);
    this.#names = new Set(['time', ...reading.numbers]);
    this.#snapshot = packed.snapshot;
  }

  /** In which form a bucket is read, behind which comes another one. */
  kindOf({ from, to }: StoredSpan, next: StoredSpan | null): HistoryPart['kind'] {
    const { time = {}, start, isSummedUp } = this.#reading;
    const isWanted = !isBefore(from.timeMs, time) && !isBehind(to.timeMs, time);
    // After a fault, reading continues behind the last packet of a part.
    const isApart =
      (next === null || comparePlaces(to, next.from) < 0) && (start == null || comparePlaces(start, from) < 0);
    if (!isWanted || !isApart) return 'packets';
    return this.#hasStatistics && isSummedUp(from.timeMs, to.timeMs) ? 'statistics' : 'columns';
  }

  /** How many buckets of this form are fetched at once. */
  atOnce(kind: HistoryPart['kind']): number {
    if (kind !== 'columns') return LIMITS.bucketHeadsRead;
    const atOnce = this.#columnsAtOnce;
    this.#columnsAtOnce = Math.min(2 * atOnce, LIMITS.bucketsRead);
    return atOnce;
  }

  fetch(kind: HistoryPart['kind'], spans: readonly StoredSpan[]): Promise<Map<string, StoredBucket>> {
    const { database, options } = this.#packed;
    const names = kind === 'statistics' ? new Set<string>() : kind === 'columns' ? this.#names : this.#buckets.names;
    return readBuckets(database, spans, { names, snapshot: this.#snapshot, options });
  }

  async read(
    kind: HistoryPart['kind'],
    span: StoredSpan,
    fetched: ReadonlyMap<string, StoredBucket>,
  ): Promise<HistoryPart> {
    const { database } = this.#packed;
    const bucket = bucketIn(fetched, span);
    if (kind === 'statistics') {
      const part = readForClient(database, bucket.id, () => this.#toStatistics(span, bucket));
      if (part !== null) return part;
      this.#hasStatistics = false;
      return this.read('columns', span, await this.fetch('columns', [span]));
    }
    await clock.nextTurn();
    database.stop?.throwIfAborted();
    return readForClient(database, bucket.id, () => this.#toColumns(span, bucket));
  }

  /** The packets of a bucket that is not read whole. */
  async open(span: StoredSpan): ReturnType<typeof openBucket> {
    const bucket = bucketIn(await this.fetch('packets', [span]), span);
    return openBucket(this.#buckets, bucket, toSelector(this.#packed.reading, false));
  }

  /** Null where the statistics do not say what the packets would. */
  #toStatistics({ from, to }: StoredSpan, bucket: StoredBucket): HistoryPart | null {
    const { numbers, needsLastTime } = this.#reading;
    const head = readHead(bucket);
    const fields: (NumberStatistics | null)[] = [];
    for (const name of numbers) {
      const statistics = head.columns.find((column) => column.name === name)?.statistics;
      if (statistics == null || statistics.values === 0) fields.push(null);
      else if (!isComplete(statistics) || (needsLastTime && statistics.values < head.rows)) return null;
      else fields.push(statistics.numbers);
    }
    return { kind: 'statistics', last: to, fromMs: from.timeMs, toMs: to.timeMs, fields };
  }

  #toColumns({ to }: StoredSpan, bucket: StoredBucket): HistoryPart {
    const reader = new BucketReader(bucket);
    const times = numbersOf(reader, 'time');
    const fields: (NumbersOfField | null)[] = [];
    for (const name of this.#reading.numbers) {
      const field = reader.readField(name);
      if (field === null) fields.push(null);
      else {
        const numbers = field.values instanceof ColumnValues ? field.values.numbersOrNulls() : null;
        if (numbers === null) return this.#toPackets(reader, to);
        fields.push({ rows: field.rows, numbers });
      }
    }
    return { kind: 'columns', last: to, times, fields };
  }

  /** Without their keys and stamps. */
  #toPackets(reader: BucketReader, last: PlaceInOrder): HistoryPart {
    const { memory, starts } = reader.readRows(this.#names);
    return { kind: 'packets', memory, starts: Array.from(starts), last };
  }
}

function bucketIn(fetched: ReadonlyMap<string, StoredBucket>, { id }: StoredSpan): StoredBucket {
  const bucket = fetched.get(id.toString('hex'));
  // At one moment, what the index has is there.
  if (bucket === undefined) throw new Error('a bucket of packets is missing behind its index');
  return bucket;
}

/** Whether all of its values are finite numbers. */
const isComplete = ({ values, numbers }: Statistics): boolean =>
  numbers?.n === values && [numbers.min, numbers.max, numbers.sum].every(Number.isFinite);

const isBefore = (timeMs: number, { from, above }: Range): boolean =>
  (from != null && timeMs < from) || (above != null && timeMs <= above);
const isBehind = (timeMs: number, { to, below }: Range): boolean =>
  (to != null && timeMs > to) || (below != null && timeMs >= below);
