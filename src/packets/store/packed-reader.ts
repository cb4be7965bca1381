/** Reads packets that are rows or in buckets, as if all of them were rows: at one moment of the database, so that none is missed or met twice. */
import { badRequest } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import type { Documents } from '../../platform/mongo/bson/document-batch.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { endAllWithin } from '../../platform/mongo/driver/deadline.js';
import { snapshotSince } from '../../platform/mongo/driver/snapshot.js';
import { bucketRuns, documentsAt, toRun } from './bucket-runs.js';
import { choose, fieldsOf, project, type Question, topOf } from './evaluate.js';
import { mergeRuns } from './merge.js';
import { closeAll, findPacked, type PackedReading, PLACE_FIELDS, rowRuns, toBucketReading } from './packed-reading.js';
import { toBatches } from './packet-documents.js';
import { type PacketReading, toFind, toProjection, toSort } from './query.js';
import { readByStamp } from './stamp-order.js';

/**
 * All packets of the query, batch by batch. Throws 503 where the work for it takes longer than `withinMs`, unless each command waits in a
 * queue: then each has its own time.
 */
export function readPacked(
  database: Database,
  reading: PacketReading,
  options: BatchOptions = {},
): AsyncGenerator<Documents> {
  const { withinMs = LIMITS.databaseOperationMs, schedule } = options;
  if (withinMs === null || schedule !== undefined) return readAll(database, reading, options);
  return endAllWithin(database, withinMs, (reader) => readAll(reader, reading, options));
}

async function* readAll(database: Database, reading: PacketReading, options: BatchOptions): AsyncGenerator<Documents> {
  const isDescending = reading.sort?.descending ?? false;
  const moment = reading.snapshot ?? snapshotSince(reading.committed?.since ?? null);
  const { snapshot, found } = await findPacked({ database, options, query: reading, isDescending }, moment);
  try {
    if (found.length === 0) yield* rawBatches(database, { ...toFind(reading), ...snapshot }, options);
    else if (isByTime(reading.sort)) yield* readMerged({ database, reading, options, snapshot, found });
    else if (reading.limit === undefined) yield* readByStamp({ database, reading, options, snapshot, found });
    else yield* readSorted({ database, reading, options, snapshot, found });
  } finally {
    await closeAll(found);
  }
}

const isByTime = (sort: PacketReading['sort']): boolean => sort == null || sort.path === 'time';

/** What is read of each packet, so that it can be placed. */
interface Fields {
  /** Null for all. */
  readonly read: readonly string[] | null;
  /** What is read for the order alone. */
  readonly dropped: ReadonlySet<string>;
}

function withPlace(fields: PacketReading['fields']): Fields {
  if (fields === null) return { read: null, dropped: new Set() };
  const dropped = new Set(PLACE_FIELDS.filter((name) => !fields.includes(name)));
  return { read: [...fields, ...dropped], dropped };
}

async function* readMerged(packed: PackedReading): AsyncGenerator<Documents> {
  const { database, reading, options, snapshot, found } = packed;
  const { read, dropped } = withPlace(reading.fields);
  const { skip = 0, limit = null, batchPackets = LIMITS.streamBatchPackets } = reading;
  const { skip: _, ...unskipped } = reading;
  const first = limit === null ? {} : { limit: skip + limit };
  const find = { ...toFind({ ...unskipped, ...first, fields: read }), ...snapshot };
  const rows = rowRuns(rawBatches(database, find, options));
  const bucketReading = toBucketReading(packed, read);
  const buckets = found.map((some) => bucketRuns(bucketReading, some));
  // Of equal places, the rows came later: behind the bucket in which there was no space for them.
  const sources = bucketReading.isDescending ? [rows, ...buckets] : [...buckets, rows];
  const segments = mergeRuns(sources, bucketReading.isDescending);
  yield* toBatches(segments, { skip, limit, batchPackets, dropped });
}

/**
 * In another order than that of time, which the database makes: of the first rows, and the first packets of each bucket. It orders numbers
 * of packets, by the fields that the order needs.
 */
async function* readSorted(packed: PackedReading): AsyncGenerator<Documents> {
  const { database, reading, options, snapshot, found } = packed;
  const { skip = 0, limit = 0, sort = null, fields } = reading;
  const { skip: _, batchPackets: __, ...whole } = reading;
  const read = fields && [...fields, sort?.path ?? '_id'];
  const firsts = new FirstPackets(database, { sort, count: skip + limit, options });
  const find = toFind({ ...whole, limit: skip + limit, batchPackets: LIMITS.bucketPackets, fields: read });
  for await (const { documents } of rawBatches(database, { ...find, ...snapshot }, options))
    await firsts.add(documents);
  const bucketReading = { ...toBucketReading(packed, read), projection: null };
  const question = firsts.among(bucketReading.question);
  for (const some of found) {
    for await (const run of bucketRuns({ ...bucketReading, question }, some)) {
      // Copies, so that the rest of the bucket is let go.
      await firsts.add(documentsAt(await run.open()).map((document) => Buffer.from(document)));
    }
  }
  const sorted = (await firsts.sort()).slice(skip);
  const isNested = fields?.some((path) => path.includes('.')) ?? false;
  const page = isNested ? await project(database, sorted, toProjection(fields ?? []), options) : sorted;
  const dropped = new Set(
    fields && [...PLACE_FIELDS, ...(read ?? []).map(topOf)].filter((name) => !fields.includes(name)),
  );
  dropped.delete('_id');
  const segments = [{ run: toRun(page), from: 0, to: page.length }];
  yield* toBatches(each(segments), {
    skip: 0,
    limit: null,
    batchPackets: page.length,
    dropped: isNested ? new Set() : dropped,
  });
}

/** Keeps the packets that come first in an order which only the database knows. */
class FirstPackets {
  readonly #database: Database;
  readonly #count: number;
  readonly #options: BatchOptions;
  readonly #order: Question;
  #kept: Buffer[] = [];
  #bytes = 0;

  constructor(
    database: Database,
    {
      sort,
      count,
      options,
    }: { readonly sort: PacketReading['sort']; readonly count: number; readonly options: BatchOptions },
  ) {
    this.#database = database;
    this.#count = count;
    this.#options = options;
    const order = toSort(sort ?? null);
    this.#order = { stages: [{ $sort: order }, { $limit: count }], fields: fieldsOf([order]) };
  }

  /** Of a bucket that may have more packets than count, only the first ones are of use. */
  among(question: Question | null): Question | null {
    if (this.#count >= LIMITS.bucketPackets) return question;
    if (question === null) return this.#order;
    const fields = new Set([...question.fields, ...this.#order.fields]);
    return { stages: [...question.stages, ...this.#order.stages], fields };
  }

  /** Throws a 400 for more than the service keeps. */
  async add(documents: readonly Buffer[]): Promise<void> {
    for (const document of documents) {
      this.#kept.push(document);
      this.#bytes += document.length + ORDER_BYTES;
    }
    if (this.#bytes <= LIMITS.packedSortBytes && this.#kept.length < 2 * this.#count + LIMITS.bucketPackets) return;
    await this.sort();
    if (this.#bytes <= LIMITS.packedSortBytes) return;
    throw badRequest(
      'sortBy: too many packets in another order than that of time; a smaller limit or offset, or `only`',
    );
  }

  /** The first packets so far, in their order. */
  async sort(): Promise<readonly Buffer[]> {
    const places = await choose(this.#database, this.#kept, this.#order, { options: this.#options });
    this.#kept = places.map((place) => this.#kept[place] as Buffer);
    this.#bytes = this.#kept.reduce((sum, { length }) => sum + length + ORDER_BYTES, 0);
    return this.#kept;
  }
}

/** What a packet takes more than its own bytes in the command that orders it. */
const ORDER_BYTES = 32;

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}
