/** The packets of objects as they come in: durable before they are acknowledged, those of one moment written together. */
import { setImmediate as turn } from 'node:timers/promises';
import { BSON, type Document, MongoServerError, ObjectId } from 'mongodb';
import { conflict, tooLarge, unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';
import { type Message, type Packet, type PacketSource, toPacket } from '../model/packet.js';
import type { Database } from './connect.js';
import { toDatabaseError, toEntity, withinTime } from './documents.js';
import { PACKET_LAYOUT, PACKETS } from './packets.js';
import { insertMany, type NewDocument } from './write-command.js';

const DUPLICATE = 11_000;

export interface Ingested {
  readonly packets: readonly Packet[];
  /** How many were stored already: sent again with the `_id` of the first time. */
  readonly repeated: number;
}

interface Waiting {
  readonly objectId: string;
  readonly packets: readonly Packet[];
  /** The same as they are stored. */
  readonly documents: readonly NewDocument[];
  /** When they came; ms of the process' own clock. */
  readonly sinceMs: number;
  readonly signal: AbortSignal | null;
  readonly resolve: (result: Ingested) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Stores the messages of one object; answers when they are durable. What still waits to be written when `signal` is aborted
 * is not stored, and ends with the signal's reason.
 */
export type Ingest = (
  source: PacketSource,
  messages: readonly Message[],
  signal?: AbortSignal | null,
) => Promise<Ingested>;

/** Requests whose packets are written together. */
interface Group {
  readonly requests: readonly Waiting[];
  readonly objectIds: ReadonlySet<string>;
  /** Whether others may be begun beside it: more were waiting than go together, or so few that waiting would gain nothing. */
  readonly allowsMore: boolean;
}

/**
 * Packets that arrive in one turn of the event loop, or while a write is under way, go into the next one together: larger
 * groups cost less. Only beside those that are as large as can be, or small, another is begun; packets of one object are
 * written one after the other all the same.
 */
export function createIngest(database: Database, stampUs: () => number): Ingest {
  let waiting: Waiting[] = [];
  let waitingPackets = 0;
  let isSoon = false;
  let underWay: readonly Group[] = [];

  const begin = (): void => {
    const { aborted, wanted } = splitAborted(waiting);
    waiting = wanted;
    waitingPackets -= countPackets(aborted);
    for (const { reject, signal } of aborted) reject(signal?.reason);
    while (mayBegin(underWay)) {
      const { group, left } = takeGroup(waiting, underWay);
      if (group.requests.length === 0) return;
      waiting = left;
      waitingPackets -= countPackets(group.requests);
      void run(group);
    }
  };
  const beginSoon = (): void => {
    if (isSoon || !mayBegin(underWay)) return;
    isSoon = true;
    setImmediate(() => {
      isSoon = false;
      begin();
    });
  };
  const run = async (group: Group): Promise<void> => {
    underWay = underWay.concat(group);
    await writeGroup(database, group.requests);
    // Who was answered asks again within this turn, and who comes alone does not wait for any.
    await turn();
    underWay = underWay.filter((one) => one !== group);
    begin();
  };

  return async (source, messages, signal = null) => {
    if (messages.length === 0) return { packets: [], repeated: 0 };
    if (waitingPackets > 0 && waitingPackets + messages.length > LIMITS.packetsWaiting) {
      throw unavailable('too many packets are waiting to be stored; none of these was');
    }
    const { packets, documents } = toPackets(source, messages, stampUs);
    return new Promise((resolve, reject) => {
      const sinceMs = performance.now();
      waiting.push({ objectId: source.objectId, packets, documents, sinceMs, signal, resolve, reject });
      waitingPackets += packets.length;
      if (!isBusy(underWay, source.objectId)) beginSoon();
    });
  };
}

/** The messages as packets, in their order; and as they are stored. */
function toPackets(source: PacketSource, messages: readonly Message[], stampUs: () => number) {
  const references = { _oid: new ObjectId(source.objectId), _gid: new ObjectId(source.groupId) };
  const packets: Packet[] = [];
  const documents = messages.map((message, at) => {
    const _id = message.id === null ? new ObjectId() : new ObjectId(message.id);
    const packet = toPacket(message, _id.toHexString(), source, stampUs());
    packets.push(packet);
    return toStored({ ...packet, _id, ...references }, at);
  });
  return { packets, documents };
}

function toStored(document: Document, at: number): NewDocument {
  const most = mostBytes(document);
  const bytes = most <= LIMITS.packetBytes ? most : BSON.calculateObjectSize(document);
  if (bytes <= LIMITS.packetBytes) return { document, bytes };
  throw tooLarge(`[${at}]: a packet has at most ${LIMITS.packetBytes} bytes`);
}

/** No fewer bytes than it has as BSON, without looking at every character; infinite where something is nested. */
function mostBytes(document: Document): number {
  let bytes = 5;
  for (const [name, value] of Object.entries(document)) {
    bytes += 2 + 3 * name.length;
    if (typeof value === 'string') bytes += 5 + 3 * value.length;
    else
      bytes += typeof value !== 'object' || value === null || value instanceof ObjectId ? 12 : Number.POSITIVE_INFINITY;
  }
  return bytes;
}

const countPackets = (group: readonly Waiting[]): number => group.reduce((sum, { packets }) => sum + packets.length, 0);

function mayBegin(underWay: readonly Group[]): boolean {
  for (const { allowsMore } of underWay) if (!allowsMore) return false;
  return underWay.length < LIMITS.packetWritesAtOnce;
}

function isBusy(underWay: readonly Group[], objectId: string): boolean {
  for (const { objectIds } of underWay) if (objectIds.has(objectId)) return true;
  return false;
}

function splitAborted(waiting: Waiting[]): { aborted: readonly Waiting[]; wanted: Waiting[] } {
  const aborted = waiting.filter(({ signal }) => signal?.aborted);
  return { aborted, wanted: aborted.length === 0 ? waiting : waiting.filter(({ signal }) => !signal?.aborted) };
}

/** The first of those whose object is not being written to, and all that go with it. */
function takeGroup(waiting: readonly Waiting[], underWay: readonly Group[]): { group: Group; left: Waiting[] } {
  const requests: Waiting[] = [];
  const left: Waiting[] = [];
  let packets = 0;
  const fullAt = waiting.findIndex((one) => {
    if (isBusy(underWay, one.objectId)) left.push(one);
    else {
      packets += one.packets.length;
      if (requests.length > 0 && packets > LIMITS.packetsPerWrite) return true;
      requests.push(one);
    }
    return false;
  });
  const objectIds = new Set(requests.map(({ objectId }) => objectId));
  const isFull = fullAt !== -1;
  const allowsMore = isFull || requests.length <= LIMITS.smallWriteRequests;
  return { group: { requests, objectIds, allowsMore }, left: isFull ? left.concat(waiting.slice(fullAt)) : left };
}

async function writeGroup(database: Database, group: readonly Waiting[]): Promise<void> {
  const packets = group.flatMap((one) => one.packets);
  const write = async () => {
    const failed = await insertAll(database, group, packets);
    const stored = failed.size === 0 ? new Map<string, Packet>() : await findStored(database, packets, failed);
    return { failed, stored };
  };
  try {
    // The one that came first has waited longest, and the time to answer counts from there.
    const leftMs = LIMITS.databaseAnswerMs - (performance.now() - (group[0]?.sinceMs ?? 0));
    if (leftMs <= 0) throw unavailable('the database is slow; none of these packets was stored');
    const { failed, stored } = await withinTime(write, leftMs);
    for (const one of group) settle(one, failed, stored);
  } catch (error) {
    for (const one of group) one.reject(toDatabaseError(error));
  }
}

// The packets that were not inserted because their `_id` was there.
async function insertAll(
  database: Database,
  group: readonly Waiting[],
  packets: readonly Packet[],
): Promise<Set<Packet>> {
  const documents = group.flatMap((one) => one.documents);
  const refusals = await insertMany(database.db, PACKETS, documents);
  const other = refusals.find(({ code }) => code !== DUPLICATE);
  if (other !== undefined) throw new MongoServerError({ ...other });
  return new Set(refusals.map(({ index }) => packets[index] as Packet));
}

const storedKey = (packet: Pick<Packet, '_id' | '_oid'>): string => `${packet._oid}/${packet._id}`;

async function findStored(
  database: Database,
  packets: readonly Packet[],
  failed: ReadonlySet<Packet>,
): Promise<Map<string, Packet>> {
  const ids = packets.filter((packet) => failed.has(packet)).map((packet) => new ObjectId(packet._id));
  const documents = await database.db
    .collection(PACKETS)
    .find({ _id: { $in: ids } }, { readConcern: { level: 'majority' }, batchSize: ids.length })
    .toArray();
  return new Map(
    documents.map((document) => {
      const packet = toEntity(PACKET_LAYOUT, document) as unknown as Packet;
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
