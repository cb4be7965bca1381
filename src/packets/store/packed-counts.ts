/** What is known of packets in rows and buckets without reading all of them: their number, their stamps, and those of a name. */
import { type Binary, ObjectId } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import { clock } from '../../platform/clock.js';
import { readNumber } from '../../platform/mongo/bson/numbers.js';
import { rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { countMatching } from '../../platform/mongo/bson/raw-cursor.js';
import { BSON_TYPES, findField, PACKET_KEY } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { endWithin } from '../../platform/mongo/driver/deadline.js';
import { NOW, type Snapshot, snapshotOf } from '../../platform/mongo/driver/snapshot.js';
import {
  type BucketReading,
  bucketRuns,
  findSpans,
  mayHaveStamps,
  readBuckets,
  readWhole,
  toSelector,
  toWholeRange,
} from './bucket-runs.js';
import { BUCKETS, SPAN_INDEX, type StoredSpan } from './buckets.js';
import { project, type Question } from './evaluate.js';
import type { OpenRun } from './merge.js';
import { closeAll, findPacked, type PackedObjects, PLACE_FIELDS, toQuestion } from './packed-reading.js';
import { findInBuckets } from './packed-repeats.js';
import {
  keyOf,
  PACKETS,
  type PacketName,
  type PacketQuery,
  type PacketReading,
  type Range,
  toFilter,
  toNamedFind,
  toProjection,
} from './query.js';

/** Buckets of which the query selects all packets count without being read. Throws 503 where that takes too long. */
export const countPacked = (database: Database, query: PacketQuery): Promise<number> =>
  endWithin(database, LIMITS.databaseOperationMs, (reader) => count(reader, query));

async function count(database: Database, query: PacketQuery): Promise<number> {
  if (isOfTimes(query)) return countWithin(database, query);
  const packed = await findPacked({ database, options: {}, query, isDescending: false });
  try {
    let sum = await countMatching(database, PACKETS, toFilter(query), packed.snapshot);
    const question = toQuestion(query);
    if (question !== null) return sum + (await countSelected(database, query, { question, packed }));
    for await (const { span, chosen } of spansOf(database, query, packed))
      sum += (await chosen?.())?.length ?? span.packets;
    return sum;
  } finally {
    await closeAll(packed.found);
  }
}

/** Whether times alone select the packets, of one object. */
const isOfTimes = (query: PacketQuery): boolean =>
  query.objectIds.length === 1 &&
  [query.start, query.stamps, query.exceptKeys].every((part) => part == null) &&
  toQuestion(query) === null;

/** The database adds up the buckets of which all packets count, by keys of the index; what lies over an end of the interval is read. */
async function countWithin(database: Database, query: PacketQuery): Promise<number> {
  const [objectId = ''] = query.objectIds;
  const { from = null, to = null } = toWholeRange(query, false);
  let snapshot = NOW;
  let sum = 0;
  for await (const batch of rawBatches(database, { ...toPacketCount(objectId, { from, to }), ...NOW })) {
    snapshot = snapshotOf(batch);
    for (const document of batch.documents) sum += readNumber(document, 0, 'packets');
  }
  sum += await countMatching(database, PACKETS, toFilter(query), snapshot);
  const atEnds = new Map<string, StoredSpan>();
  for (const end of [from, to]) {
    if (end === null) continue;
    const there = { objectIds: [objectId], time: { from: end, to: end } };
    const { spans } = await findSpans({ database, options: {}, query: there, isDescending: false }, objectId, snapshot);
    for await (const some of spans ?? []) for (const span of some) atEnds.set(span.id.toString('hex'), span);
  }
  for (const span of atEnds.values()) {
    if (!isWhole(span, query)) sum += (await readChosen(database, query, { span, snapshot })).length;
  }
  return sum;
}

/** The command that adds up the packets of the buckets of an object that lie between these times. */
function toPacketCount(objectId: string, { from, to }: { readonly from: number | null; readonly to: number | null }) {
  const since = from === null ? {} : { 'from.time': { $gte: from } };
  const until = to === null ? {} : { 'to.time': { $lte: to } };
  const match = { _oid: new ObjectId(objectId), isPending: false, ...since, ...until };
  const pipeline = [{ $match: match }, { $group: { _id: null, packets: { $sum: '$n' } } }];
  return { aggregate: BUCKETS, pipeline, cursor: {}, hint: SPAN_INDEX };
}

async function countSelected(
  database: Database,
  query: PacketQuery,
  { question, packed }: { readonly question: Question; readonly packed: PackedObjects },
): Promise<number> {
  const names = new Set(PLACE_FIELDS);
  const reading: BucketReading = {
    database,
    options: {},
    query,
    isDescending: false,
    names,
    question,
    projection: null,
    keptBytes: Number.POSITIVE_INFINITY,
  };
  let sum = 0;
  for (const some of packed.found) {
    for await (const { open } of bucketRuns(reading, some)) sum += (await open()).starts.length;
  }
  return sum;
}

/** Stamps in microseconds since the epoch, both included. */
export interface StampRange {
  readonly fromUs: number;
  readonly toUs: number;
}

/** Of packets in buckets; null if the query selects none, and after `withinMs`. */
export async function findPackedStamps(
  database: Database,
  query: PacketQuery,
  { packed, withinMs }: { readonly packed: PackedObjects; readonly withinMs: number },
): Promise<StampRange | null> {
  const endMs = clock.steadyMs() + withinMs;
  let fromUs = Number.POSITIVE_INFINITY;
  let toUs = Number.NEGATIVE_INFINITY;
  for await (const { span, chosen } of spansOf(database, query, packed)) {
    if (clock.steadyMs() > endMs) return null;
    const stamps = chosen === null ? [span.stamps.from, span.stamps.to] : await chosen();
    for (const stamp of stamps) {
      fromUs = Math.min(fromUs, stamp);
      toUs = Math.max(toUs, stamp);
    }
  }
  return fromUs > toUs ? null : { fromUs, toUs };
}

interface ChosenOfSpan {
  readonly span: StoredSpan;
  /** The stamps of the packets that the query selects; null if these are all of the bucket. */
  readonly chosen: (() => Promise<number[]>) | null;
}

async function* spansOf(
  database: Database,
  query: PacketQuery,
  { found }: PackedObjects,
): AsyncGenerator<ChosenOfSpan> {
  for (const { spans, snapshot } of found) {
    for await (const some of spans) {
      for (const span of some.filter((one) => mayHaveStamps(one, query))) {
        const read = () => readChosen(database, query, { span, snapshot });
        yield { span, chosen: isWhole(span, query) ? null : read };
      }
    }
  }
}

/** The stamps of the packets of a bucket that the query selects. */
async function readChosen(
  database: Database,
  query: PacketQuery,
  { span, snapshot }: { readonly span: StoredSpan; readonly snapshot: Snapshot },
): Promise<number[]> {
  await clock.nextTurn();
  const names = new Set(query.exceptKeys === undefined ? PLACE_FIELDS : ['_id', ...PLACE_FIELDS]);
  const [bucket] = (await readBuckets(database, [span], { names, snapshot, options: {} })).values();
  if (bucket === undefined) throw new Error('a bucket of packets is missing behind its index');
  const run: OpenRun = readWhole(database, bucket, names);
  return toSelector(query, false)(run).map((nth) => run.stamps[nth] as number);
}

/** Whether the query selects all packets of the bucket, whichever they are. */
function isWhole({ from, to, stamps }: StoredSpan, query: PacketQuery): boolean {
  if (query.start != null || (query.exceptKeys?.length ?? 0) > 0) return false;
  const times = toWholeRange(query, false);
  if ((times.from ?? from.timeMs) > from.timeMs || (times.to ?? to.timeMs) < to.timeMs) return false;
  return query.stamps?.some((range) => contains(range, stamps.from) && contains(range, stamps.to)) ?? true;
}

const contains = ({ from, above, to, below }: Range, number: number): boolean =>
  !((from != null && number < from) || (above != null && number <= above)) &&
  !((to != null && number > to) || (below != null && number >= below));

/** Packets of these names, in rows or buckets, at one moment. Throws 503 where that takes too long. */
export const findNamedPacked = (
  database: Database,
  names: readonly PacketName[],
  fields: PacketReading['fields'],
): Promise<Buffer[]> => endWithin(database, LIMITS.databaseAnswerMs, (reader) => findNamed(reader, names, fields));

async function findNamed(
  database: Database,
  names: readonly PacketName[],
  fields: PacketReading['fields'],
): Promise<Buffer[]> {
  const rows: Buffer[] = [];
  let snapshot = NOW;
  for await (const batch of rawBatches(database, { ...toNamedFind(names, fields), ...NOW })) {
    if (snapshot === NOW) snapshot = snapshotOf(batch);
    rows.push(...batch.documents);
  }
  const stored = new Set(rows.map(keyTextOf));
  const missing = names.filter((name) => !stored.has(keyTextOfName(name)));
  const packed: Buffer[] = [];
  for (const objectId of new Set(missing.map((name) => name.objectId))) {
    const some = missing.filter((name) => name.objectId === objectId);
    const ids = some.map(({ packetId }) => Buffer.from(packetId, 'hex'));
    // At this moment, the packets of pending buckets are rows.
    // Whoever reads does not take the turn of the device that sends.
    const caller = { userId: `readers of ${objectId}` };
    const search = { objectId, ids, withPending: false, snapshot, caller, passesOverDamaged: false };
    packed.push(...(await findInBuckets(database, search)).values());
  }
  if (fields === null || packed.length === 0) return [...rows, ...packed];
  return [...rows, ...(await project(database, packed, toProjection(fields), {}))];
}

const keyTextOfName = (name: PacketName): string => (keyOf(name) as unknown as Binary).toString('hex');

function keyTextOf(document: Buffer): string {
  const key = findField(document, '_id', BSON_TYPES.BINARY);
  return key === null ? '' : key.toString('hex', key.length - PACKET_KEY.BYTES);
}
