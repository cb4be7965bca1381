/** Finds the latest packet of each object, reading one index key per object, and the last one with data. */
import { BSONType, type Document, ObjectId } from 'mongodb';
import { distinctPaths } from '../../core/list.js';
import { PACKET_FIELDS, PRESENCE_FIELDS } from '../../core/packet-fields.js';
import type { DocumentBatch } from '../../platform/mongo/bson/document-batch.js';
import { readNumber } from '../../platform/mongo/bson/numbers.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { findField, readObjectId } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { PACKETS, toProjection } from './query.js';

const OBJECTS = 'objects';
/** The member of each result that holds the packet; `_id` is that of its object. No object has a member of this name. */
const FOUND = '_found';
/** Members beside a packet of which not all fields are there: facts about it. */
const TIME = '_time';
const ONLINE = '_online';
const HAS_DATA = '_hasData';

export interface PacketFacts {
  /** Whether it has more than the fields of a report of presence. */
  readonly hasData: boolean;
  /** The value of `online`, if it is a boolean. */
  readonly online: Buffer | null;
  readonly timeMs: number;
}

export interface LatestPacket {
  readonly objectId: string;
  readonly packet: Buffer;
  /** What all of its fields told, where it has only some of them. */
  readonly facts: PacketFacts | null;
}

export interface LatestReading {
  readonly objectIds: readonly string[];
  /** Up to which time packets count; null for all. */
  readonly boundMs: number | null;
  /** The fields of each packet, beside `_id`; null for all. */
  readonly fields: readonly string[] | null;
}

/** The latest packets of these objects, batch by batch. */
export function readLatest(
  database: Database,
  { objectIds, boundMs, fields }: LatestReading,
  options: BatchOptions,
): AsyncGenerator<LatestPacket[]> {
  const facts = fields === null ? [] : [factsAnd(fields)];
  if (boundMs !== null) return readFound(database, lookBack({ objectIds, boundMs }, [{ $limit: 1 }], facts), options);
  const cursor = { batchSize: objectIds.length + 1 };
  return readFound(database, { aggregate: PACKETS, pipeline: [...latestOfEach(objectIds), ...facts], cursor }, options);
}

/** The last packets with data, among as many packets of each object; no facts come with them. */
export function readLatestData(
  database: Database,
  { objectIds, boundMs, fields, among }: LatestReading & { readonly among: number },
  options: BatchOptions,
): AsyncGenerator<LatestPacket[]> {
  const search: Document[] = [
    { $limit: among },
    // Nearly all that has no data is found by the number of its fields, in a quarter of the time.
    { $match: { $expr: { $gt: [{ $size: { $objectToArray: '$$ROOT' } }, PACKET_FIELDS.length] } } },
    { $match: { $expr: holdsData('$$ROOT') } },
    { $limit: 1 },
  ];
  if (fields !== null) search.push({ $project: toProjection(fields) });
  return readFound(database, lookBack({ objectIds, boundMs }, search, []), options);
}

/** Objects, and in the same answer the latest packets of them: `toLatest` tells which is which. */
export function readObjectsWithLatest(
  database: Database,
  objectIds: readonly string[],
  { projection, ...options }: BatchOptions & { readonly projection: Document | undefined },
): AsyncGenerator<DocumentBatch> {
  const pipeline: Document[] = [
    { $match: { _id: { $in: objectIds.map((id) => new ObjectId(id)) } } },
    ...(projection === undefined ? [] : [{ $project: projection }]),
    { $unionWith: { coll: PACKETS, pipeline: latestOfEach(objectIds) } },
  ];
  const cursor = { batchSize: 2 * objectIds.length + 1 };
  return rawBatches(database, { aggregate: OBJECTS, pipeline, cursor }, options);
}

/** The packet in a result; null where there is none. */
export function toLatest(document: Buffer): LatestPacket | null {
  const packet = findField(document, FOUND, BSONType.object);
  if (packet === null) return null;
  const hasData = findField(document, HAS_DATA, BSONType.bool);
  const facts = hasData && {
    hasData: hasData[0] === 1,
    online: findField(document, ONLINE, BSONType.bool),
    timeMs: readNumber(document, 0, TIME),
  };
  return { objectId: readObjectId(document) ?? '', packet, facts };
}

async function* readFound(
  database: Database,
  command: Document,
  options: BatchOptions,
): AsyncGenerator<LatestPacket[]> {
  for await (const { documents } of rawBatches(database, command, options)) {
    yield documents.flatMap((document) => toLatest(document) ?? []);
  }
}

/** The packet of each object with the greatest `time`, then `_ts`. */
function latestOfEach(objectIds: readonly string[]): Document[] {
  return [
    { $match: { _oid: { $in: objectIds.map((id) => new ObjectId(id)) } } },
    { $sort: { _oid: 1, time: 1, _ts: 1 } },
    { $group: { _id: '$_oid', [FOUND]: { $last: '$$ROOT' } } },
  ];
}

/** `search`: the stages that choose at most one packet of the object's packets in descending order. `then`: what follows it. */
function lookBack(
  { objectIds, boundMs }: Pick<LatestReading, 'objectIds' | 'boundMs'>,
  search: readonly Document[],
  then: readonly Document[],
): Document {
  const upTo = boundMs === null ? {} : { time: { $lte: boundMs } };
  const latestFirst: Document[] = [{ $sort: { time: -1, _ts: -1 } }, ...search];
  const cursor = { batchSize: objectIds.length + 1 };
  const ids = objectIds.map((id) => new ObjectId(id));
  // For one object, this pipeline costs the database half as much.
  if (ids.length === 1) {
    const wrap = { $replaceWith: { _id: ids[0], [FOUND]: '$$ROOT' } };
    const pipeline = [{ $match: { _oid: ids[0], ...upTo } }, ...latestFirst, wrap, ...then];
    return { aggregate: PACKETS, pipeline, cursor };
  }
  const pipeline = boundMs === null ? latestFirst : [{ $match: upTo }, ...latestFirst];
  const lookUp = { from: PACKETS, localField: '_id', foreignField: '_oid', pipeline, as: FOUND };
  return {
    aggregate: OBJECTS,
    pipeline: [
      { $match: { _id: { $in: ids } } },
      { $project: { _id: 1 } },
      { $lookup: lookUp },
      { $unwind: `$${FOUND}` },
      ...then,
    ],
    cursor,
  };
}

/** An expression: whether a packet has more than the fields of a report of presence. */
const holdsData = (packet: string): Document => ({
  $ne: [
    { $setDifference: [{ $map: { input: { $objectToArray: packet }, in: '$$this.k' } }, [...PRESENCE_FIELDS]] },
    [],
  ],
});

/** A stage that restricts the packets of results to these fields, and adds what is needed of all others. */
function factsAnd(fields: readonly string[]): Document {
  const shown = distinctPaths(['_id', ...fields]).map((path) => [`${FOUND}.${path}`, 1]);
  const facts = { [TIME]: `$${FOUND}.time`, [ONLINE]: `$${FOUND}.online`, [HAS_DATA]: holdsData(`$${FOUND}`) };
  return { $project: Object.assign(Object.fromEntries(shown), facts) };
}
