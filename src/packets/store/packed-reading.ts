/** Which buckets a query needs, the moment at which it is read, and how packets come out of them and out of the rows. */
import { type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import type { DocumentBatch } from '../../platform/mongo/bson/document-batch.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { readObjectId } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { NOW, type Snapshot, snapshotOf } from '../../platform/mongo/driver/snapshot.js';
import {
  type BucketReading,
  type FoundSpans,
  findSpans,
  placesOf,
  type SpanSearch,
  toWholeRange,
} from './bucket-runs.js';
import { BUCKETS } from './buckets.js';
import { fieldsOf, type Question, topOf } from './evaluate.js';
import type { OpenRun, Run } from './merge.js';
import { type PacketQuery, type PacketReading, toConditions, toProjection } from './query.js';

/** The moment of a read, and the buckets that its query may select packets of. */
export interface PackedObjects {
  readonly snapshot: Snapshot;
  readonly found: readonly FoundSpans[];
}

/** Looks for buckets of these objects at a moment: whoever gets some closes them. */
export async function findPacked(reading: SpanSearch, moment: Snapshot = NOW): Promise<PackedObjects> {
  const { objectIds } = reading.query;
  const [only = '', ...others] = objectIds;
  let snapshot = moment;
  let withBuckets: readonly string[] = [only];
  if (others.length > 0) {
    const objects = await findObjectsWithBuckets(reading, moment);
    snapshot = objects.snapshot;
    withBuckets = objects.objectIds;
  }
  const found: FoundSpans[] = [];
  try {
    for (const objectId of withBuckets) {
      const { spans, ...at } = await findSpans(reading, objectId, snapshot);
      snapshot = at.snapshot;
      if (spans !== null) found.push({ snapshot, spans });
    }
    return { snapshot, found };
  } catch (error) {
    await closeAll(found);
    throw error;
  }
}

/** Closes what was not read to its end. */
export async function closeAll(found: readonly FoundSpans[]): Promise<void> {
  for (const { spans } of found) await spans.return(undefined);
}

/** Reads one key of the index for each object. */
async function findObjectsWithBuckets({ database, options, query, isDescending }: SpanSearch, moment: Snapshot) {
  const { from, to } = toWholeRange(query, isDescending);
  const ids = query.objectIds.map((id) => new ObjectId(id));
  const since = from == null ? {} : { 'to.time': { $gte: from } };
  const pipeline: Document[] = [
    { $match: { _oid: { $in: ids }, isPending: false, ...since } },
    { $sort: { _oid: 1, isPending: 1, 'to.time': 1, 'to.stamp': 1 } },
    { $group: { _id: '$_oid', from: { $first: '$from.time' } } },
  ];
  if (to != null) pipeline.push({ $match: { from: { $lte: to } } });
  const cursor = { batchSize: ids.length + 1 };
  const command = { aggregate: BUCKETS, pipeline, cursor, ...moment };
  const objectIds: string[] = [];
  let snapshot = moment;
  for await (const batch of rawBatches(database, command, { ...options, readsAhead: false })) {
    snapshot = snapshotOf(batch);
    for (const document of batch.documents) objectIds.push(readObjectId(document) ?? '');
  }
  return { objectIds, snapshot };
}

export interface PackedReading extends PackedObjects {
  readonly database: Database;
  readonly reading: PacketReading;
  readonly options: BatchOptions;
}

/** What places a packet in the order. */
export const PLACE_FIELDS: readonly string[] = ['time', '_ts'];

/** How packets of buckets are read, so that they have these fields. */
export function toBucketReading(
  { database, reading, options, found }: PackedReading,
  fields: PacketReading['fields'],
): BucketReading {
  const isNested = fields?.some((path) => path.includes('.')) ?? false;
  return {
    database,
    options,
    query: reading,
    isDescending: reading.sort?.descending ?? false,
    names: fields && new Set(['_id', ...PLACE_FIELDS, ...fields.map(topOf)]),
    question: toQuestion(reading),
    projection: fields !== null && isNested ? toProjection(fields) : null,
    keptBytes: Math.floor(LIMITS.packedReadBytes / found.length),
  };
}

/** What only the database can tell of a query. */
export function toQuestion(query: PacketQuery): Question | null {
  const conditions = toConditions(query);
  if (conditions.length === 0) return null;
  return { stages: [{ $match: { $and: conditions } }], fields: fieldsOf(conditions) };
}

/** Batches of rows as runs. */
export async function* rowRuns(batches: AsyncGenerator<DocumentBatch>): AsyncGenerator<Run> {
  for await (const batch of batches) {
    const starts = batch.starts();
    if (starts.length === 0) continue;
    const run: OpenRun = { memory: batch.memory, starts, ...placesOf(batch.memory, starts) };
    yield { first: { timeMs: run.times[0] as number, stampUs: run.stamps[0] as number }, open: async () => run };
  }
}
