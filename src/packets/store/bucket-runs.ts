/**
 * Reads buckets as runs of packets: those that a query may select, each when its packets are wanted. Times, stamps, places and keys are
 * compared here; filters, searches and projections of nested fields are left to the database, so that packed packets are selected as
 * stored ones are.
 */
import type { Document } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import { BucketReader } from '../../packed/unpack.js';
import type { ColumnValues } from '../../packed/values.js';
import { clock } from '../../platform/clock.js';
import type { DocumentBatch } from '../../platform/mongo/bson/document-batch.js';
import { readNumber } from '../../platform/mongo/bson/numbers.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { BSON_TYPES, documentAt, findField, findValue, int32, PACKET_KEY } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { type Snapshot, snapshotOf } from '../../platform/mongo/driver/snapshot.js';
import { type StoredBucket, type StoredSpan, toBucket, toBucketFind, toSpan, toSpanFind } from './buckets.js';
import { readForClient } from './damaged-buckets.js';
import { choose, project, type Question } from './evaluate.js';
import type { OpenRun, Run } from './merge.js';
import type { PacketQuery, Range, ReadStart } from './query.js';

/** What is read of the buckets of an object. */
export interface BucketReading {
  readonly database: Database;
  readonly options: BatchOptions;
  readonly query: PacketQuery;
  readonly isDescending: boolean;
  /** The top-level fields that are read; null for all. */
  readonly names: ReadonlySet<string> | null;
  /** What the database selects, and orders, among the packets of each bucket. */
  readonly question: Question | null;
  /** How the database shows each packet. */
  readonly projection: Document | null;
  /** How many bytes of packets may stay in memory. */
  readonly keptBytes: number;
}

/** The buckets of an object that the query may select packets of, and the moment at which they are read. */
export interface FoundSpans {
  readonly snapshot: Snapshot;
  readonly spans: AsyncGenerator<StoredSpan[]>;
}

/** How buckets are looked for. */
export interface SpanSearch extends Pick<BucketReading, 'database' | 'options' | 'query' | 'isDescending'> {
  /** How many are found at once. */
  readonly spansRead?: number;
}

/** Null if there are none; `snapshot` then is the moment of that. */
export async function findSpans(
  { database, options, query, isDescending, spansRead = LIMITS.bucketSpansRead }: SpanSearch,
  objectId: string,
  snapshot: Snapshot,
): Promise<{ readonly snapshot: Snapshot; readonly spans: AsyncGenerator<StoredSpan[]> | null }> {
  const find = toSpanFind({ objectId, time: toWholeRange(query, isDescending), isDescending });
  const command = { ...find, batchSize: spansRead, ...snapshot };
  const batches = rawBatches(database, command, { ...options, readsAhead: false });
  const { value: first } = await batches.next();
  const found = { snapshot: first === undefined ? snapshot : snapshotOf(first) };
  if (first !== undefined && first.first() !== -1) return { ...found, spans: spansIn(first, batches) };
  await batches.return(undefined);
  return { ...found, spans: null };
}

async function* spansIn(first: DocumentBatch, others: AsyncGenerator<DocumentBatch>): AsyncGenerator<StoredSpan[]> {
  try {
    yield first.documents.map(toSpan);
    for await (const { documents } of others) yield documents.map(toSpan);
  } finally {
    await others.return(undefined);
  }
}

/** The packets that the query selects, as runs of at most `keptBytes`, or of one packet. */
export async function* bucketRuns(reading: BucketReading, { snapshot, spans }: FoundSpans): AsyncGenerator<Run> {
  const select = toSelector(reading.query, reading.isDescending);
  for await (const some of bucketsIn(reading, snapshot, spans)) {
    let run: OpenRun | null = null;
    const { span } = some;
    const open = async (): Promise<OpenRun> => {
      run = await openBucket(reading, await some.read(), select);
      return run;
    };
    const first = reading.isDescending ? span.to : span.from;
    yield* runsWithin(first, open, reading.keptBytes);
  }
}

/** Cuts a bucket into runs, and reads it again for each, if its packets are more than may be kept. */
async function* runsWithin(first: Run['first'], open: () => Promise<OpenRun>, keptBytes: number): AsyncGenerator<Run> {
  let next: { readonly place: Run['first']; readonly at: number } | null = { place: first, at: 0 };
  while (next !== null) {
    const { place, at }: { readonly place: Run['first']; readonly at: number } = next;
    next = null;
    yield {
      first: place,
      open: async () => {
        const run = await open();
        const end = endWithin(run, at, keptBytes);
        if (at === 0 && end === run.starts.length) return run;
        if (end < run.starts.length) {
          next = { place: { timeMs: run.times[end] as number, stampUs: run.stamps[end] as number }, at: end };
        }
        return cutOut(run, at, end);
      },
    };
  }
}

function endWithin({ memory, starts }: OpenRun, at: number, keptBytes: number): number {
  let bytes = 0;
  let end = at;
  for (; end < starts.length; end++) {
    bytes += int32(memory, starts[end] as number);
    if (bytes > keptBytes && end > at) break;
  }
  return end;
}

function cutOut({ memory, starts, times, stamps }: OpenRun, from: number, to: number): OpenRun {
  const documents = Array.from({ length: to - from }, (_, nth) => documentAt(memory, starts[from + nth] as number));
  let pos = 0;
  const places = documents.map(({ length }) => {
    pos += length;
    return pos - length;
  });
  return {
    memory: Buffer.concat(documents),
    starts: places,
    times: Array.prototype.slice.call(times, from, to),
    stamps: Array.prototype.slice.call(stamps, from, to),
  };
}

interface SpanWithBucket {
  readonly span: StoredSpan;
  readonly read: () => Promise<StoredBucket>;
}

/** Several buckets are read at once, the more of them the further it goes. */
async function* bucketsIn(
  { database, options, query, names, question }: BucketReading,
  snapshot: Snapshot,
  spans: AsyncGenerator<StoredSpan[]>,
): AsyncGenerator<SpanWithBucket> {
  const needed = names && new Set([...names, ...ALWAYS_READ, ...(question?.fields ?? [])]);
  let atOnce = 1;
  for await (const found of spans) {
    const wanted = found.filter((span) => mayHaveStamps(span, query));
    for (let at = 0; at < wanted.length; ) {
      const some = wanted.slice(at, at + atOnce);
      at += some.length;
      atOnce = Math.min(2 * atOnce, LIMITS.bucketsRead);
      let reading: Promise<Map<string, StoredBucket>> | null = null;
      for (const span of some) {
        yield {
          span,
          read: async () => {
            reading ??= readBuckets(database, some, { names: needed, snapshot, options });
            const bucket = (await reading).get(span.id.toString('hex'));
            // At one moment, what the index has is there.
            if (bucket === undefined) throw new Error('a bucket of packets is missing behind its index');
            return bucket;
          },
        };
      }
    }
  }
}

/** Whether a bucket may have packets with the stamps of the query. */
export const mayHaveStamps = ({ stamps }: StoredSpan, query: PacketQuery): boolean =>
  query.stamps?.some((range) => !isDisjoint(range, stamps)) ?? true;

export const isDisjoint = (
  { from, above, to, below }: Range,
  extent: { readonly from: number; readonly to: number },
): boolean =>
  (from != null && extent.to < from) ||
  (above != null && extent.to <= above) ||
  (to != null && extent.from > to) ||
  (below != null && extent.from >= below);

/** Reads buckets by their `_id`. */
export async function readBuckets(
  database: Database,
  spans: readonly Pick<StoredSpan, 'id' | 'objectId'>[],
  {
    names,
    snapshot,
    options,
  }: { readonly names: ReadonlySet<string> | null; readonly snapshot: Snapshot; readonly options: BatchOptions },
): Promise<Map<string, StoredBucket>> {
  const [first] = spans;
  const found = new Map<string, StoredBucket>();
  if (first === undefined) return found;
  const ids = spans.map(({ id }) => id);
  const command = { ...toBucketFind(first.objectId, ids, names && [...names]), ...snapshot };
  for await (const { documents } of rawBatches(database, command, { ...options, readsAhead: false })) {
    for (const document of documents) {
      const bucket = toBucket(document);
      found.set(bucket.id.toString('hex'), bucket);
    }
  }
  return found;
}

/** The packets of a bucket that the query selects, in its order. Others have a turn of the event loop before. */
export async function openBucket(
  { database, options, isDescending, names, question, projection }: BucketReading,
  bucket: StoredBucket,
  select: Selector,
): Promise<OpenRun> {
  await clock.nextTurn();
  database.stop?.throwIfAborted();
  const readFields = openReader(database, bucket);
  const asked = question === null ? names : new Set([...ALWAYS_READ, ...question.fields]);
  const some = readFields(asked);
  let chosen = select(some);
  if (isDescending) chosen.reverse();
  if (question !== null && chosen.length > 0) {
    const places = await choose(database, documentsAt(some, chosen), question, {
      options,
      pieceBytes: LIMITS.evaluatedBytes,
    });
    chosen = places.map((place) => chosen[place] as number);
  }
  if (chosen.length === 0) return NO_PACKETS;
  const run = pick(asked === names ? some : readFields(names), chosen);
  if (projection === null) return run;
  return toRun(await project(database, documentsAt(run), projection, options));
}

const NO_PACKETS: OpenRun = { memory: Buffer.alloc(0), starts: [], times: [], stamps: [] };
/** By these, packets of a bucket are selected before the database is asked. */
const ALWAYS_READ = ['_id', 'time', '_ts'] as const;

/** The packets of a run; with `places`, these of them. */
export const documentsAt = ({ memory, starts }: OpenRun, places?: readonly number[]): Buffer[] =>
  places === undefined
    ? Array.from(starts, (start) => documentAt(memory, start))
    : places.map((place) => documentAt(memory, starts[place] as number));

/** All packets of a bucket. Throws a 500 for one that is damaged. */
export const readWhole = (database: Database, bucket: StoredBucket, names: ReadonlySet<string> | null): OpenRun =>
  openReader(database, bucket)(names);

/** Reads fields of all packets of a bucket, again and again; null for all fields. Throws a 500 for one that is damaged. */
function openReader(database: Database, bucket: StoredBucket): (names: ReadonlySet<string> | null) => OpenRun {
  const reader = readForClient(database, bucket.id, () => new BucketReader(bucket));
  return (names) =>
    readForClient(database, bucket.id, () => {
      const { memory, starts } = reader.readRows(names);
      return { memory, starts, times: numbersOf(reader, 'time'), stamps: numbersOf(reader, '_ts') };
    });
}

/** Every packed packet has both as numbers. */
export function numbersOf(reader: BucketReader, name: 'time' | '_ts'): Float64Array {
  const numbers = (reader.readField(name)?.values as ColumnValues | undefined)?.allNumbers();
  if (numbers?.length !== reader.head.rows) throw new Error(`a packed packet without ${name}`);
  return numbers;
}

const pick = ({ memory, starts, times, stamps }: OpenRun, rows: readonly number[]): OpenRun => ({
  memory,
  starts: rows.map((row) => starts[row] as number),
  times: rows.map((row) => times[row] as number),
  stamps: rows.map((row) => stamps[row] as number),
});

/** Stored packets as a run. */
export function toRun(documents: readonly Buffer[]): OpenRun {
  const [only] = documents;
  const memory = documents.length === 1 ? (only as Buffer) : Buffer.concat(documents);
  let pos = 0;
  const starts = documents.map(({ length }) => {
    pos += length;
    return pos - length;
  });
  return { memory, starts, ...placesOf(memory, starts) };
}

/** Times and stamps as the database orders them: nothing, and what is no number, before all numbers or behind them. */
export function placesOf(memory: Buffer, starts: readonly number[]): Pick<OpenRun, 'times' | 'stamps'> {
  return {
    times: starts.map((start) => orderedNumber(memory, start, 'time')),
    stamps: starts.map((start) => orderedNumber(memory, start, '_ts')),
  };
}

const BEFORE_NUMBERS = [BSON_TYPES.NULL, BSON_TYPES.UNDEFINED, BSON_TYPES.DOUBLE];
const BEHIND_NUMBERS = Object.values(BSON_TYPES).filter((type) => !BEFORE_NUMBERS.includes(type as never));

function orderedNumber(memory: Buffer, start: number, name: string): number {
  const number = readNumber(memory, start, name);
  if (!Number.isNaN(number)) return number;
  const isBehind = BEHIND_NUMBERS.some((type) => findValue(memory, start, name, type) !== -1);
  return isBehind ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
}

/** Chooses packets of a bucket by their number. */
export type Selector = (run: OpenRun) => number[];

/** What the query asks of times, stamps, places and keys. */
export function toSelector(query: PacketQuery, isDescending: boolean): Selector {
  const { from = null, to = null } = toWholeRange(query, isDescending);
  const isAtStart = query.start == null ? null : toStartTest(query.start, isDescending);
  const keys = query.exceptKeys && new Set(query.exceptKeys.map((key) => key.toString('hex')));
  return ({ memory, starts, times, stamps }) => {
    const chosen: number[] = [];
    for (let nth = 0; nth < starts.length; nth++) {
      const timeMs = times[nth] as number;
      const stampUs = stamps[nth] as number;
      if ((from !== null && timeMs < from) || (to !== null && timeMs > to)) continue;
      if (isAtStart !== null && !isAtStart(timeMs, stampUs)) continue;
      if (query.stamps !== undefined && !query.stamps.some((range) => contains(range, stampUs))) continue;
      if (keys?.has(keyAt(memory, starts[nth] as number))) continue;
      chosen.push(nth);
    }
    return chosen;
  };
}

const contains = (range: Range, number: number): boolean => !isDisjoint(range, { from: number, to: number });

const toStartTest =
  ({ timeMs, stampUs, isIncluded }: ReadStart, isDescending: boolean) =>
  (time: number, stamp: number): boolean => {
    const difference = (isDescending ? -1 : 1) * (time - timeMs || stamp - stampUs);
    return difference > 0 || (isIncluded && difference === 0);
  };

/** Of the packets' own `_id` and that of their object. */
function keyAt(memory: Buffer, start: number): string {
  const key = findField(documentAt(memory, start), '_id', BSON_TYPES.BINARY);
  return key === null ? '' : key.toString('hex', key.length - PACKET_KEY.BYTES);
}

/** The times that a query allows, as whole numbers, which all packed ones are. */
export function toWholeRange({ time, selection, start }: PacketQuery, isDescending: boolean): Range {
  const selected = selection ? { from: selection.fromMs, to: selection.toMs } : {};
  const begun = start == null ? {} : { [isDescending ? 'to' : 'from']: start.timeMs };
  const range: { from?: number; to?: number } = {};
  for (const { from, above, to, below } of [time ?? {}, selected, begun] as Range[]) {
    if (from != null) range.from = Math.max(range.from ?? Number.NEGATIVE_INFINITY, Math.ceil(from));
    if (above != null) range.from = Math.max(range.from ?? Number.NEGATIVE_INFINITY, Math.floor(above) + 1);
    if (to != null) range.to = Math.min(range.to ?? Number.POSITIVE_INFINITY, Math.floor(to));
    if (below != null) range.to = Math.min(range.to ?? Number.POSITIVE_INFINITY, Math.ceil(below) - 1);
  }
  return range;
}
