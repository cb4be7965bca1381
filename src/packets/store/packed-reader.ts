/** Reads packets that are rows or in buckets, as if all of them were rows: at one moment of the database, so that none is missed or met twice. */
import type { Document } from 'mongodb';
import { badRequest } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import type { Documents } from '../../platform/mongo/bson/document-batch.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { documentAt } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { bucketRuns, toRun } from './bucket-runs.js';
import { evaluate } from './evaluate.js';
import { mergeRuns, type OpenRun } from './merge.js';
import { closeAll, findPacked, type PackedReading, PLACE_FIELDS, rowRuns, toBucketReading } from './packed-reading.js';
import { toBatches } from './packet-documents.js';
import { type PacketReading, toFind, toProjection, toSort } from './query.js';
import { readByStamp } from './stamp-order.js';

/** All packets of the query, batch by batch. */
export async function* readPacked(
  database: Database,
  reading: PacketReading,
  options: BatchOptions = {},
): AsyncGenerator<Documents> {
  const isDescending = reading.sort?.descending ?? false;
  const { snapshot, found } = await findPacked({ database, options, query: reading, isDescending });
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

/** In another order than that of time, which the database makes: of the first rows, and the first packets of each bucket. */
async function* readSorted(packed: PackedReading): AsyncGenerator<Documents> {
  const { database, reading, options, snapshot, found } = packed;
  const { skip = 0, limit = 0, sort = null, fields } = reading;
  const { skip: _, batchPackets: __, ...whole } = reading;
  const first = {
    ...whole,
    limit: skip + limit,
    batchPackets: LIMITS.bucketPackets,
    fields: fields && [...fields, sort?.path ?? '_id'],
  };
  const sortAndCut: Document[] = [{ $sort: toSort(sort) }, { $limit: skip + limit }];
  const bucketReading = toBucketReading(packed, first.fields);
  const firstOfEach = { ...bucketReading, stages: [...bucketReading.stages, ...sortAndCut] };
  let kept: Buffer[] = [];
  let bytes = 0;
  const keep = async (documents: readonly Buffer[]): Promise<void> => {
    kept.push(...documents);
    bytes += documents.reduce((sum, { length }) => sum + length, 0);
    if (bytes <= LIMITS.packedSortBytes) return;
    kept = await sortTogether(database, kept, { stages: sortAndCut, options });
    bytes = kept.reduce((sum, { length }) => sum + length, 0);
  };
  for await (const batch of rawBatches(database, { ...toFind(first), ...snapshot }, options))
    await keep(batch.documents);
  for (const some of found) {
    for await (const run of bucketRuns(firstOfEach, some)) await keep(documentsOf(await run.open()));
  }
  const last: Document[] = [{ $sort: toSort(sort) }, { $skip: skip }, { $limit: limit }];
  if (fields !== null) last.push({ $project: toProjection(fields) });
  const page = await sortTogether(database, kept, { stages: last, options });
  const segments = [{ run: toRun(page), from: 0, to: page.length }];
  yield* toBatches(each(segments), { skip: 0, limit: null, batchPackets: page.length, dropped: new Set() });
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

const documentsOf = ({ memory, starts }: OpenRun): Buffer[] => Array.from(starts, (start) => documentAt(memory, start));

/** Throws a 400 for more than the database takes at once. */
function sortTogether(
  database: Database,
  documents: readonly Buffer[],
  { stages, options }: { readonly stages: readonly Document[]; readonly options: BatchOptions },
): Promise<Buffer[]> {
  const bytes = documents.reduce((sum, { length }) => sum + length, 0);
  if (bytes > LIMITS.packedSortBytes + LIMITS.bucketBytes) {
    throw badRequest(
      'sortBy: too many packets in another order than that of time; a smaller limit or offset, or `only`',
    );
  }
  return evaluate(database, documents, stages, options, bytes);
}
