/**
 * Reads packets, for all that shows, sums up, exports or judges them. Who asks names objects, times and an order, and gets packets as
 * BSON. docs/architecture.md lists the readers.
 */
import { MongoServerError } from 'mongodb';
import type { DocumentBatch } from '../../platform/mongo/bson/document-batch.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { countMatching, readFirst } from '../../platform/mongo/bson/raw-cursor.js';
import { COMMITTED_READ, type Database } from '../../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../../platform/mongo/driver/errors.js';
import {
  PACKETS,
  type PacketName,
  type PacketQuery,
  type PacketReading,
  toFilter,
  toFind,
  toNamedFind,
} from './query.js';

/** All packets of the query, batch by batch. */
export const readPackets = (
  database: Database,
  reading: PacketReading,
  options?: BatchOptions,
): AsyncGenerator<DocumentBatch> => rawBatches(database, toFind(reading), options);

/** The packets of the query, where there are few. */
export async function collectPackets(
  database: Database,
  reading: PacketReading & { limit: number },
): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const { documents } of readPackets(database, reading)) found.push(...documents);
  return found;
}

/** The first packet of the query in its order. */
export const findFirstPacket = (database: Database, reading: PacketReading): Promise<Buffer | null> =>
  readFirst(database, toFind(reading));

export const countPackets = (database: Database, query: PacketQuery): Promise<number> =>
  countMatching(database, PACKETS, toFilter(query));

/** Stamps in microseconds since the epoch, both included. */
export interface StampRange {
  readonly fromUs: number;
  readonly toUs: number;
}

const MAX_TIME_EXPIRED = 50;

/** The first and the last stamp of the query's packets, by keys of the index alone. Null without packets, and after `withinMs`. */
export async function findStampRange(
  { db }: Database,
  query: PacketQuery,
  withinMs: number,
): Promise<StampRange | null> {
  const group = { _id: null, fromUs: { $min: '$_ts' }, toUs: { $max: '$_ts' } };
  const pipeline = [{ $match: toFilter(query) }, { $group: group }];
  const find = () =>
    db
      .collection(PACKETS)
      .aggregate(pipeline, { maxTimeMS: withinMs })
      .toArray()
      .catch((error) => {
        if (error instanceof MongoServerError && error.code === MAX_TIME_EXPIRED) return [];
        throw error;
      });
  const [found] = await mapDriverErrors(find);
  return found === undefined ? null : { fromUs: found.fromUs, toUs: found.toUs };
}

/** The packet of this name; `fields` as in a reading. */
export const findNamedPacket = (
  database: Database,
  name: PacketName,
  fields: PacketReading['fields'],
): Promise<Buffer | null> => readFirst(database, toNamedFind([name], fields));

/** Those packets of these names that are stored; with `isCommitted`, those that no election undoes. */
export async function findNamedPackets(
  database: Database,
  names: readonly PacketName[],
  { fields, isCommitted = false }: { fields: PacketReading['fields']; isCommitted?: boolean },
): Promise<Buffer[]> {
  const command = { ...toNamedFind(names, fields), ...(isCommitted && COMMITTED_READ) };
  const found: Buffer[] = [];
  for await (const { documents } of rawBatches(database, command)) found.push(...documents);
  return found;
}
