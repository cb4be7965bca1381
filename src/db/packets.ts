/** The packets of objects: inserted in groups, read by interval, one by one, or as an object's latest. */
import { type Document, type Filter, MongoBulkWriteError, ObjectId } from 'mongodb';
import { conflict, notFound, unavailable } from '../errors.js';
import { isId } from '../model/entity.js';
import { LIMITS } from '../model/limits.js';
import type { Page, Selection } from '../model/list.js';
import { type Message, type Packet, type PacketSource, toPacket } from '../model/packet.js';
import type { Database } from './connect.js';
import {
  type Layout,
  projectionOf,
  selectionFilter,
  toDatabaseError,
  toDocument,
  toEntity,
  translated,
} from './documents.js';
import { findDocument, readObjectId } from './json.js';
import { type JsonPage, rawBatches, readOne, readPage } from './pages.js';

const COLLECTION = 'packets';
const LAYOUT: Layout = { references: ['_oid', '_gid'], texts: ['id'], hidden: [], derived: [], builtIn: false };
const DUPLICATE = 11_000;

/** A page of an object's packets as JSON, ascending by `time`, then `_ts`, unless the query says otherwise. */
export async function listPackets(database: Database, objectId: string, page: Page): Promise<JsonPage> {
  if (page.limit === 0) return { body: Buffer.from('[]\n'), count: 0, lastId: null };
  const conditions = packetConditions(objectId, page);
  if (page.after !== null) conditions.push(await afterPacket(database, objectId, page.after));
  const sort = page.sort;
  const direction = sort?.descending ? -1 : 1;
  return readPage(database, {
    find: COLLECTION,
    filter: { $and: conditions },
    sort:
      sort === null || sort.path === 'time' ? { time: direction, _ts: direction } : { [sort.path]: direction, _id: 1 },
    skip: page.offset,
    limit: page.limit,
    batchSize: page.limit,
    allowDiskUse: true,
    ...projected(page.only),
  });
}

/** How many packets of the object lie within the filters, and the first and last of them. */
export async function summarizePackets(database: Database, objectId: string, selection: Selection): Promise<Buffer> {
  const filter = { $and: packetConditions(objectId, selection) };
  const end = (direction: 1 | -1) =>
    readOne(database, {
      find: COLLECTION,
      filter,
      sort: { time: direction, _ts: direction },
      ...projected(selection.only),
    });
  const count = translated(() =>
    database.db.collection(COLLECTION).countDocuments(filter, { maxTimeMS: LIMITS.databaseOperationMs }),
  );
  const [total, first, last] = await Promise.all([count, end(1), end(-1)]);
  return Buffer.from(`{"count":${total},"first":${first ?? 'null'},"last":${last ?? 'null'}}\n`);
}

/** One packet of this object as JSON. Throws 404, also for a packet of another object. */
export async function readPacket(
  database: Database,
  objectId: string,
  packetId: string,
  only: readonly string[] | null,
): Promise<Buffer> {
  if (!isId(packetId)) throw notFound();
  const filter = { _id: new ObjectId(packetId), _oid: new ObjectId(objectId) };
  const found = await readOne(database, { find: COLLECTION, filter, ...projected(only) });
  if (found === null) throw notFound();
  return found;
}

function packetConditions(objectId: string, selection: Selection): Filter<Document>[] {
  return [{ _oid: new ObjectId(objectId) }, ...selectionFilter(LAYOUT, selection, ['id'])];
}

async function afterPacket(database: Database, objectId: string, packetId: string): Promise<Filter<Document>> {
  const last = await translated(() =>
    database.db
      .collection(COLLECTION)
      .findOne({ _id: new ObjectId(packetId), _oid: new ObjectId(objectId) }, { projection: { time: 1, _ts: 1 } }),
  );
  if (last === null) throw notFound();
  return { time: { $gte: last.time }, $or: [{ time: { $gt: last.time } }, { _ts: { $gt: last._ts } }] };
}

function projected(only: readonly string[] | null): { projection?: Document } {
  const projection = projectionOf(LAYOUT, only);
  return projection === undefined ? {} : { projection };
}

/**
 * The packet with the greatest `time`, then `_ts`, of each of these objects as BSON, by the object's `_id`.
 * One step in the index per object. `paths` narrows the packet's fields.
 */
export async function latestPackets(
  database: Database,
  objectIds: readonly string[],
  paths: readonly string[] | null,
): Promise<Map<string, Uint8Array>> {
  const latest = new Map<string, Uint8Array>();
  if (objectIds.length === 0) return latest;
  const ids = objectIds.map((id) => new ObjectId(id));
  const pipeline: Document[] = [
    { $match: { _oid: { $in: ids } } },
    { $sort: { _oid: 1, time: 1, _ts: 1 } },
    { $group: { _id: '$_oid', packet: { $last: '$$ROOT' } } },
  ];
  if (paths !== null) {
    pipeline.push({ $project: { 'packet._id': 1, ...Object.fromEntries(paths.map((path) => [`packet.${path}`, 1])) } });
  }
  const command = { aggregate: COLLECTION, pipeline, cursor: { batchSize: ids.length } };
  for await (const documents of rawBatches(database, command)) {
    for (const document of documents) {
      const packet = findDocument(document, 'packet');
      if (packet !== null) latest.set(readObjectId(document) ?? '', packet);
    }
  }
  return latest;
}

/** Removes all packets of an object that was removed, in steps that are each short enough for the database. */
export async function removePackets(database: Database, objectId: string): Promise<void> {
  const packets = database.db.collection(COLLECTION);
  const ofObject = { _oid: new ObjectId(objectId) };
  for (;;) {
    const some = await packets.find(ofObject, { projection: { _id: 1 }, limit: LIMITS.packetsPerRequest }).toArray();
    if (some.length === 0) return;
    await packets.deleteMany({ _id: { $in: some.map(({ _id }) => _id) } });
  }
}

/** The latest packet of one object, or null. */
export async function readState(database: Database, objectId: string): Promise<Packet | null> {
  const found = await translated(() =>
    database.db
      .collection(COLLECTION)
      .findOne(
        { _oid: new ObjectId(objectId) },
        { sort: { _oid: -1, time: -1, _ts: -1 }, maxTimeMS: LIMITS.databaseOperationMs },
      ),
  );
  return found === null ? null : (toEntity(LAYOUT, found) as unknown as Packet);
}

export interface Ingested {
  readonly packets: readonly Packet[];
  /** How many were stored already: sent again with the `_id` of the first time. */
  readonly repeated: number;
}

interface Waiting {
  readonly packets: Packet[];
  readonly resolve: (result: Ingested) => void;
  readonly reject: (error: unknown) => void;
}

/** Stores the messages of one object; answers when they are durable. */
export type Ingest = (source: PacketSource, messages: readonly Message[]) => Promise<Ingested>;

/** Packets that arrive while one write is under way go into the next one together. */
export function createIngest(database: Database, stampUs: () => number): Ingest {
  let waiting: Waiting[] = [];
  let waitingPackets = 0;
  let writing = false;

  const writeNext = async (): Promise<void> => {
    writing = true;
    while (waiting.length > 0) {
      const group = takeGroup(waiting);
      waiting = waiting.slice(group.length);
      waitingPackets -= countPackets(group);
      await writeGroup(database, group);
    }
    writing = false;
  };

  return (source, messages) => {
    if (waitingPackets > 0 && waitingPackets + messages.length > LIMITS.packetsWaiting) {
      throw unavailable('too many packets are waiting to be stored; none of these was');
    }
    const packets = messages.map((message) =>
      toPacket(message, message.id ?? new ObjectId().toHexString(), source, stampUs()),
    );
    return new Promise((resolve, reject) => {
      waiting.push({ packets, resolve, reject });
      waitingPackets += packets.length;
      if (!writing) void writeNext();
    });
  };
}

const countPackets = (group: readonly Waiting[]): number => group.reduce((sum, { packets }) => sum + packets.length, 0);

function takeGroup(waiting: readonly Waiting[]): Waiting[] {
  let packets = 0;
  const over = waiting.findIndex((one, at) => {
    packets += one.packets.length;
    return at > 0 && packets > LIMITS.packetsPerWrite;
  });
  return over === -1 ? [...waiting] : waiting.slice(0, over);
}

async function writeGroup(database: Database, group: readonly Waiting[]): Promise<void> {
  const packets = group.flatMap((one) => one.packets);
  try {
    const failed = await insertAll(database, packets);
    const stored = failed.size === 0 ? new Map<string, Packet>() : await findStored(database, packets, failed);
    for (const one of group) settle(one, failed, stored);
  } catch (error) {
    for (const one of group) one.reject(toDatabaseError(error));
  }
}

// The packets that were not inserted because their `_id` was there.
async function insertAll(database: Database, packets: readonly Packet[]): Promise<Set<Packet>> {
  try {
    await database.db.collection(COLLECTION).insertMany(
      packets.map((packet) => toDocument(LAYOUT, packet)),
      { ordered: false },
    );
    return new Set();
  } catch (error) {
    const errors = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : [];
    const durable = error instanceof MongoBulkWriteError && error.result.getWriteConcernError() === undefined;
    if (errors.length === 0 || !durable || errors.some(({ code }) => code !== DUPLICATE)) throw error;
    return new Set(errors.map(({ index }) => packets[index] as Packet));
  }
}

const storedKey = (packet: Pick<Packet, '_id' | '_oid'>): string => `${packet._oid}/${packet._id}`;

async function findStored(
  database: Database,
  packets: readonly Packet[],
  failed: ReadonlySet<Packet>,
): Promise<Map<string, Packet>> {
  const ids = packets.filter((packet) => failed.has(packet)).map((packet) => new ObjectId(packet._id));
  const documents = await database.db
    .collection(COLLECTION)
    .find({ _id: { $in: ids } }, { readConcern: { level: 'majority' }, batchSize: ids.length })
    .toArray();
  return new Map(
    documents.map((document) => {
      const packet = toEntity(LAYOUT, document) as unknown as Packet;
      return [storedKey(packet), packet];
    }),
  );
}

function settle(one: Waiting, failed: ReadonlySet<Packet>, stored: ReadonlyMap<string, Packet>): void {
  const packets = one.packets.map((packet) => (failed.has(packet) ? stored.get(storedKey(packet)) : packet));
  if (packets.includes(undefined)) {
    one.reject(conflict('_id: already taken by another packet'));
    return;
  }
  const repeated = one.packets.filter((packet) => failed.has(packet)).length;
  one.resolve({ packets: packets as Packet[], repeated });
}
