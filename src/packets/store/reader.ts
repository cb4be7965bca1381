/**
 * Reads packets, for all that shows, sums up, exports or judges them. Who asks names objects, times and an order, and gets packets as
 * BSON. docs/architecture.md lists the readers.
 */
import { type AggregateOptions, MongoServerError } from 'mongodb';
import { unavailable } from '../../core/errors.js';
import { LIMITS } from '../../core/limits.js';
import type { Documents } from '../../platform/mongo/bson/document-batch.js';
import { readNumber } from '../../platform/mongo/bson/numbers.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { countMatching, readFirst } from '../../platform/mongo/bson/raw-cursor.js';
import { readShownId } from '../../platform/mongo/bson/reader.js';
import { COMMITTED_READ, type Database } from '../../platform/mongo/driver/client.js';
import { isSnapshotGone, mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import { type Snapshot, snapshotsOf } from '../../platform/mongo/driver/snapshot.js';
import { countPacked, findNamedPacked, findPackedStamps, type StampRange } from './packed-counts.js';
import { mayHaveBuckets, readEither } from './packed-history.js';
import { readPacked } from './packed-reader.js';
import { closeAll, findPacked } from './packed-reading.js';
import {
  LATEST_FIRST,
  PACKETS,
  type PacketName,
  type PacketQuery,
  type PacketReading,
  toFilter,
  toFind,
  toNamedFind,
} from './query.js';

/** All packets of the query, batch by batch. */
export async function* readPackets(
  database: Database,
  reading: PacketReading,
  options?: BatchOptions,
): AsyncGenerator<Documents> {
  let hasYielded = false;
  if (!(await mayHaveBuckets(database))) {
    for await (const batch of rawBatches(database, toFind(reading), options)) {
      if (await mayHaveBuckets(database)) break;
      yield batch;
      hasYielded = true;
      if (batch.cursorId === 0n) return;
    }
    // What follows may have become a bucket.
    if (hasYielded) throw unavailable('packets are being packed', new Error('rows are packed for the first time'));
  }
  yield* readPacked(database, reading, options);
}

/** The packets of the query, where there are few. */
export async function collectPackets(
  database: Database,
  reading: PacketReading & { limit: number },
): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const { documents } of readPackets(database, reading)) found.push(...documents);
  return found;
}

/** Where a packet is among those of its object: by the clock of whoever stored it, and in the order of the database. */
export interface StoredPlace {
  readonly stampUs: number;
  /** The position of its change; null where that is not known. */
  readonly position: string | null;
}

/**
 * The last packets of an object, by their time, that were stored before a place. The clocks of those that store packets may differ: the
 * order of the database counts. It has some minutes of its past; before that, the stamps of the packets have to do.
 */
export async function collectBefore(
  database: Database,
  { objectId, place, limit }: { objectId: string; place: StoredPlace; limit: number },
): Promise<Buffer[]> {
  const { stampUs, position } = place;
  const committed = { since: position };
  const last = { objectIds: [objectId], sort: LATEST_FIRST, limit, batchPackets: limit, fields: null, committed };
  const byStamp = { ...last, stamps: [{ below: stampUs }] };
  if (position === null) return collectPackets(database, byStamp);
  try {
    const [before, at] = snapshotsOf(position);
    const found = await collectPackets(database, { ...last, limit: limit + 1, snapshot: at });
    const stamps = found.map((packet) => readNumber(packet, 0, '_ts'));
    if (stamps.every((stamp) => stamp <= stampUs))
      return found.filter((_, nth) => stamps[nth] !== stampUs).slice(0, limit);
    // Packets of one write are stored at one moment, in the order of their stamps.
    const earlier = await collectPackets(database, { ...last, snapshot: before });
    const ofOneWrite = await collectPackets(database, { ...byStamp, snapshot: at });
    return lastOf([...earlier, ...ofOneWrite], limit);
  } catch (error) {
    if (!isSnapshotGone(error)) throw error;
    return collectPackets(database, byStamp);
  }
}

function lastOf(packets: readonly Buffer[], limit: number): Buffer[] {
  const byId = new Map(packets.map((packet) => [readShownId(packet), packet]));
  const timeOf = (packet: Buffer): number => readNumber(packet, 0, 'time');
  const stampOf = (packet: Buffer): number => readNumber(packet, 0, '_ts');
  const sorted = [...byId.values()].sort((a, b) => timeOf(b) - timeOf(a) || stampOf(b) - stampOf(a));
  return sorted.slice(0, limit);
}

/** The first packet of the query in its order. */
export async function findFirstPacket(database: Database, reading: PacketReading): Promise<Buffer | null> {
  const findRow = () => readFirst(database, toFind(reading));
  // The latest packet of an object is never packed.
  if (isOfLatest(reading)) {
    const latest = await findRow();
    if (latest !== null) return latest;
  }
  return readEither(database, findRow, async () => {
    const withinMs = LIMITS.databaseAnswerMs;
    for await (const { documents } of readPacked(database, { ...reading, limit: 1 }, { withinMs })) {
      return documents[0] ?? null;
    }
    return null;
  });
}

const isOfLatest = ({ sort, time, stamps, start, exceptKeys, selection, skip }: PacketReading): boolean =>
  sort?.path === 'time' &&
  sort.descending &&
  [time, stamps, start, exceptKeys, selection, skip].every((part) => part == null);

export const countPackets = (database: Database, query: PacketQuery): Promise<number> =>
  readEither(
    database,
    () => countMatching(database, PACKETS, toFilter(query)),
    () => countPacked(database, query),
  );

const MAX_TIME_EXPIRED = 50;

/** The first and the last stamp of the query's packets. Null without packets, and after `withinMs`. */
export const findStampRange = (database: Database, query: PacketQuery, withinMs: number): Promise<StampRange | null> =>
  readEither(
    database,
    () => findStampsOfRows(database, query, { withinMs }),
    async () => {
      const packed = await findPacked({ database, options: {}, query, isDescending: false });
      try {
        const rows = await findStampsOfRows(database, query, { withinMs, snapshot: packed.snapshot });
        return joinRanges(rows, await findPackedStamps(database, query, { packed, withinMs }));
      } finally {
        await closeAll(packed.found);
      }
    },
  );

const joinRanges = (one: StampRange | null, other: StampRange | null): StampRange | null =>
  one && other ? { fromUs: Math.min(one.fromUs, other.fromUs), toUs: Math.max(one.toUs, other.toUs) } : (one ?? other);

/** By keys of the index alone. */
async function findStampsOfRows(
  { db }: Database,
  query: PacketQuery,
  { withinMs, snapshot }: { readonly withinMs: number; readonly snapshot?: Snapshot },
): Promise<StampRange | null> {
  const group = { _id: null, fromUs: { $min: '$_ts' }, toUs: { $max: '$_ts' } };
  const pipeline = [{ $match: toFilter(query) }, { $group: group }];
  const find = () =>
    db
      .collection(PACKETS)
      .aggregate(pipeline, { maxTimeMS: withinMs, ...snapshot } as AggregateOptions)
      .toArray()
      .catch((error) => {
        if (error instanceof MongoServerError && error.code === MAX_TIME_EXPIRED) return [];
        throw error;
      });
  const [found] = await mapDriverErrors(find);
  return found === undefined ? null : { fromUs: found.fromUs, toUs: found.toUs };
}

/** The packet of this name; `fields` as in a reading. */
export async function findNamedPacket(
  database: Database,
  name: PacketName,
  fields: PacketReading['fields'],
): Promise<Buffer | null> {
  const row = await readFirst(database, toNamedFind([name], fields));
  if (row !== null || !(await mayHaveBuckets(database))) return row;
  const [packet = null] = await findNamedPacked(database, [name], fields);
  return packet;
}

/** Those packets of these names that are stored; with `isCommitted`, those that no election undoes. */
export async function findNamedPackets(
  database: Database,
  names: readonly PacketName[],
  { fields, isCommitted = false }: { fields: PacketReading['fields']; isCommitted?: boolean },
): Promise<Buffer[]> {
  const command = { ...toNamedFind(names, fields), ...(isCommitted && COMMITTED_READ) };
  const found: Buffer[] = [];
  for await (const { documents } of rawBatches(database, command)) found.push(...documents);
  if (found.length >= names.length || !(await mayHaveBuckets(database))) return found;
  return findNamedPacked(database, names, fields);
}
