/** The packets of objects as they come in: durable before they are acknowledged, those of one moment written together. */
import { setImmediate as turn } from 'node:timers/promises';
import { type Document, MongoServerError, ObjectId } from 'mongodb';
import { conflict, tooLarge, unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';
import { type Message, type Packet, type PacketSource, toPacket } from '../model/packet.js';
import { toBson } from './bson-writer.js';
import type { Database } from './connect.js';
import { toDatabaseError, toEntity, withinTime } from './documents.js';
import { PACKET_LAYOUT, PACKETS } from './packets.js';
import { insertTogether, type Write } from './write-command.js';

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
  readonly writes: readonly Write[];
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
    const { packets, writes } = toPackets(source, messages, stampUs);
    return new Promise((resolve, reject) => {
      const sinceMs = performance.now();
      waiting.push({ objectId: source.objectId, packets, writes, sinceMs, signal, resolve, reject });
      waitingPackets += packets.length;
      if (!isBusy(underWay, source.objectId)) beginSoon();
    });
  };
}

/** The messages as packets, in their order; and as they are stored. */
function toPackets(source: PacketSource, messages: readonly Message[], stampUs: () => number) {
  const references = { _oid: new ObjectId(source.objectId), _gid: new ObjectId(source.groupId) };
  const packets: Packet[] = [];
  const writes = messages.map((message, at) => {
    const _id = message.id === null ? new ObjectId() : new ObjectId(message.id);
    const packet = toPacket(message, _id.toHexString(), source, stampUs());
    packets.push(packet);
    return toWrite({ ...packet, _id, ...references }, at);
  });
  return { packets, writes };
}

function toWrite(document: Document, at: number): Write {
  const bson = toBson(document, LIMITS.packetBytes);
  if (bson === null) throw tooLarge(`[${at}]: a packet has at most ${LIMITS.packetBytes} bytes`);
  return { bson };
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

/** Packets that were not stored now, and why; where their `_id` was there already, what is stored under it. */
interface Written {
  readonly refused: ReadonlyMap<Packet, unknown>;
  readonly stored: ReadonlyMap<string, Packet>;
}

async function writeGroup(database: Database, group: readonly Waiting[]): Promise<void> {
  const write = async (): Promise<Written> => {
    const refused = await insertAll(database, group);
    const repeated = [...refused].filter(([, error]) => isDuplicate(error)).map(([packet]) => packet);
    return { refused, stored: await findStored(database, repeated) };
  };
  try {
    // The one that came first has waited longest, and the time to answer counts from there.
    const leftMs = LIMITS.databaseAnswerMs - (performance.now() - (group[0]?.sinceMs ?? 0));
    if (leftMs <= 0) throw unavailable('the database is slow; none of these packets was stored');
    const written = await withinTime(write, leftMs);
    for (const one of group) settle(one, written);
  } catch (error) {
    for (const one of group) one.reject(toDatabaseError(error));
  }
}

async function insertAll(database: Database, group: readonly Waiting[]): Promise<Map<Packet, unknown>> {
  const packets = group.flatMap((one) => one.packets);
  const writes = group.flatMap((one) => one.writes);
  const refused = new Map<Packet, unknown>();
  for (const [nth, outcome] of (await insertTogether(database.db, PACKETS, writes)).entries()) {
    if ('refused' in outcome) refused.set(packets[nth] as Packet, outcome.refused);
  }
  return refused;
}

const isDuplicate = (error: unknown): boolean => error instanceof MongoServerError && error.code === DUPLICATE;

const storedKey = (packet: Pick<Packet, '_id' | '_oid'>): string => `${packet._oid}/${packet._id}`;

async function findStored(database: Database, repeated: readonly Packet[]): Promise<Map<string, Packet>> {
  if (repeated.length === 0) return new Map();
  const ids = repeated.map(({ _id }) => new ObjectId(_id));
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

function settle(one: Waiting, { refused, stored }: Written): void {
  let repeated = 0;
  const packets = one.packets.map((packet) => {
    if (!refused.has(packet)) return packet;
    repeated++;
    return stored.get(storedKey(packet));
  });
  if (!packets.includes(undefined)) one.resolve({ packets: packets as Packet[], repeated });
  else one.reject(whyRefused(one, refused));
}

/** What the database says of the first packet that is not stored, and is not one that was stored before. */
function whyRefused({ packets }: Waiting, refused: ReadonlyMap<Packet, unknown>): unknown {
  const other = packets
    .map((packet) => refused.get(packet))
    .find((error) => error !== undefined && !isDuplicate(error));
  return other === undefined ? conflict('_id: already taken by another packet') : toDatabaseError(other);
}
