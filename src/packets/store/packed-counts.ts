/** What is known of packets in rows and buckets without reading all of them: their number, their stamps, and those of a name. */
import type { Binary, Document } from 'mongodb';
import { BucketReader } from '../../packed/unpack.js';
import { clock } from '../../platform/clock.js';
import { rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { countMatching } from '../../platform/mongo/bson/raw-cursor.js';
import { BSON_TYPES, documentAt, findField, PACKET_KEY } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import {
  type BucketReading,
  bucketRuns,
  mayHaveStamps,
  NOW,
  readBuckets,
  readWhole,
  type Snapshot,
  snapshotOf,
  toApiError,
  toSelector,
  toWholeRange,
} from './bucket-runs.js';
import { type StoredSpan, toSpan, toSpanFind } from './buckets.js';
import { evaluate } from './evaluate.js';
import type { OpenRun } from './merge.js';
import { closeAll, findPacked, type PackedObjects, PLACE_FIELDS } from './packed-reading.js';
import {
  keyOf,
  PACKETS,
  type PacketName,
  type PacketQuery,
  type PacketReading,
  type Range,
  toConditions,
  toFilter,
  toNamedFind,
  toProjection,
} from './query.js';

/** Buckets of which the query selects all packets count without being read. */
export async function countPacked(database: Database, query: PacketQuery): Promise<number> {
  const packed = await findPacked({ database, options: {}, query, isDescending: false });
  try {
    let count = await countMatching(database, PACKETS, toFilter(query), packed.snapshot);
    if (toConditions(query).length > 0) return count + (await countSelected(database, query, packed));
    for await (const { span, chosen } of spansOf(database, query, packed))
      count += (await chosen?.())?.length ?? span.packets;
    return count;
  } finally {
    await closeAll(packed.found);
  }
}

async function countSelected(database: Database, query: PacketQuery, { found }: PackedObjects): Promise<number> {
  const stages = [{ $match: { $and: toConditions(query) } }, { $project: { _id: 1 } }];
  const keptBytes = Number.POSITIVE_INFINITY;
  const reading: BucketReading = { database, options: {}, query, isDescending: false, names: null, stages, keptBytes };
  let count = 0;
  for (const some of found) {
    for await (const { open } of bucketRuns(reading, some)) count += (await open()).starts.length;
  }
  return count;
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
  const select = toSelector(query, false);
  const names = new Set(query.exceptKeys === undefined ? PLACE_FIELDS : ['_id', ...PLACE_FIELDS]);
  for (const { spans, snapshot } of found) {
    for await (const some of spans) {
      for (const span of some.filter((one) => mayHaveStamps(one, query))) {
        const read = async (): Promise<number[]> => {
          const [bucket] = (await readBuckets(database, [span], { names, snapshot, options: {} })).values();
          if (bucket === undefined) throw new Error('a bucket of packets is missing behind its index');
          const run: OpenRun = readWhole(bucket, names);
          return select(run).map((nth) => run.stamps[nth] as number);
        };
        yield { span, chosen: isWhole(span, query) ? null : read };
      }
    }
  }
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

/** Packets of these names, in rows or buckets, at one moment. */
export async function findNamedPacked(
  database: Database,
  names: readonly PacketName[],
  fields: PacketReading['fields'],
): Promise<Buffer[]> {
  const found: Buffer[] = [];
  let snapshot = NOW;
  for await (const batch of rawBatches(database, { ...toNamedFind(names, fields), ...NOW })) {
    if (snapshot === NOW) snapshot = snapshotOf(batch);
    found.push(...batch.documents);
  }
  const stored = new Set(found.map(keyTextOf));
  for (const name of names) {
    if (stored.has(keyTextOfName(name))) continue;
    const packet = await findInBuckets(database, name, { fields, snapshot });
    if (packet !== null) found.push(packet);
  }
  return found;
}

const keyTextOfName = (name: PacketName): string => (keyOf(name) as unknown as Binary).toString('hex');

function keyTextOf(document: Buffer): string {
  const key = findField(document, '_id', BSON_TYPES.BINARY);
  return key === null ? '' : key.toString('hex', key.length - PACKET_KEY.BYTES);
}

async function findInBuckets(
  database: Database,
  { objectId, packetId }: PacketName,
  { fields, snapshot }: { readonly fields: PacketReading['fields']; readonly snapshot: Snapshot },
): Promise<Buffer | null> {
  const idStart = Number.parseInt(packetId.slice(0, 8), 16);
  const id = Buffer.from(packetId, 'hex');
  const names = new Set(['_id', ...PLACE_FIELDS]);
  const spans: StoredSpan[] = [];
  const find = toSpanFind({ objectId, idStart });
  // At this moment, the packets of other buckets are rows.
  const command = { ...find, filter: { ...find.filter, isPending: false }, ...snapshot };
  for await (const { documents } of rawBatches(database, command)) {
    spans.push(...documents.map(toSpan));
  }
  for (const span of spans) {
    const [keys] = (await readBuckets(database, [span], { names, snapshot, options: {} })).values();
    const row = keys === undefined ? -1 : guard(() => new BucketReader(keys).findPacket(id));
    if (row === -1) continue;
    const [bucket] = (await readBuckets(database, [span], { names: null, snapshot, options: {} })).values();
    if (bucket === undefined) continue;
    const { memory, starts } = readWhole(bucket, null);
    const packet = documentAt(memory, starts[row] as number);
    if (fields === null) return packet;
    const stages: Document[] = [{ $project: toProjection(fields) }];
    const [shown = null] = await evaluate(database, [packet], stages, {});
    return shown;
  }
  return null;
}

function guard<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw toApiError(error);
  }
}
