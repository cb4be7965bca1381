/** The packets of objects as they come in: durable before they are acknowledged, those of one moment written together. */
import { setImmediate as turn } from 'node:timers/promises';
import { MongoServerError } from 'mongodb';
import { unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';
import type { Message, Packet, PacketSource } from '../model/packet.js';
import type { Database } from './connect.js';
import { toDatabaseError, withinTime } from './documents.js';
import { createOrder } from './packet-order.js';
import { findFormer, findStored } from './packet-repeats.js';
import { createPacketRoom } from './packet-room.js';
import { type PacketWrites, toPacketWrites } from './packet-writes.js';
import { PACKETS } from './packets.js';
import { insertTogether, type Write } from './write-command.js';

const DUPLICATE = 11_000;

export interface Ingested {
  readonly packets: readonly Packet[];
  /** How many were stored already: sent again with the `_id` of the first time. */
  readonly repeated: number;
}

interface Waiting extends PacketWrites {
  readonly objectId: string;
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
 * written one after the other all the same. `upgradedMs`: see `findPacketUpgrade`.
 */
export function createIngest(database: Database, stampUs: () => number, upgradedMs: number | null = null): Ingest {
  const room = createPacketRoom();
  const order = createOrder();
  const write = createWriter(database);
  return async (source, messages, signal = null) => {
    if (messages.length === 0) return { packets: [], repeated: 0 };
    const { objectId } = source;
    const place = room.enter(source.groupId, messages.length);
    const enqueue = (made: PacketWrites): Promise<Ingested> => {
      place.grow(countBytes(made.writes));
      return write(objectId, made, signal);
    };
    try {
      const made = toPacketWrites({ source, messages, stampUs, upgradedMs });
      // It may fail before its turn comes.
      if (made instanceof Promise) made.catch(() => undefined);
      else if (!order.isWaitedFor(objectId)) return await enqueue(made);
      return await (await order.after(objectId, async () => ({ stored: enqueue(await made) }))).stored;
    } finally {
      place.leave();
    }
  };
}

/** Writes in groups what is handed over, in this order for each object. */
function createWriter(database: Database) {
  let waiting: Waiting[] = [];
  let isSoon = false;
  let underWay: readonly Group[] = [];

  const begin = (): void => {
    const { aborted, wanted } = splitAborted(waiting);
    waiting = wanted;
    for (const { reject, signal } of aborted) reject(signal?.reason);
    while (mayBegin(underWay)) {
      const { group, left } = takeGroup(waiting, underWay);
      if (group.requests.length === 0) return;
      waiting = left;
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

  return (objectId: string, { packets, writes, formerIds }: PacketWrites, signal: AbortSignal | null) =>
    new Promise<Ingested>((resolve, reject) => {
      const sinceMs = performance.now();
      waiting.push({ objectId, packets, writes, formerIds, sinceMs, signal, resolve, reject });
      if (!isBusy(underWay, objectId)) beginSoon();
    });
}

function countBytes(writes: readonly Write[]): number {
  let bytes = 0;
  for (const { bson } of writes) bytes += bson.length;
  return bytes;
}

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

/** Packets that were not stored now. */
interface Written {
  /** Those that were stored before, as they were: null where that is gone since. */
  readonly repeated: ReadonlyMap<Packet, Packet | null>;
  /** The others, and why. */
  readonly refused: ReadonlyMap<Packet, unknown>;
}

async function writeGroup(database: Database, group: readonly Waiting[]): Promise<void> {
  try {
    // The one that came first has waited longest, and the time to answer counts from there.
    const leftMs = LIMITS.databaseAnswerMs - (performance.now() - (group[0]?.sinceMs ?? 0));
    if (leftMs <= 0) throw unavailable('the database is slow; none of these packets was stored');
    const written = await withinTime(() => writeAll(database, group), leftMs);
    for (const one of group) settle(one, written);
  } catch (error) {
    for (const one of group) one.reject(toDatabaseError(error));
  }
}

async function writeAll(database: Database, group: readonly Waiting[]): Promise<Written> {
  const former = await findFormer(database, group);
  const packets = group.flatMap((one) => one.packets);
  const writes = group.flatMap((one) => one.writes);
  const isNew = (_: unknown, at: number): boolean => !former.has(packets[at] as Packet);
  const refused =
    former.size === 0
      ? await insertAll(database, packets, writes)
      : await insertAll(database, packets.filter(isNew), writes.filter(isNew));
  const duplicates = [...refused].filter(([, error]) => isDuplicate(error)).map(([packet]) => packet);
  if (duplicates.length === 0) return { repeated: former, refused };
  for (const packet of duplicates) refused.delete(packet);
  return { repeated: new Map([...former, ...(await findStored(database, duplicates))]), refused };
}

async function insertAll(
  { db }: Database,
  packets: readonly Packet[],
  writes: readonly Write[],
): Promise<Map<Packet, unknown>> {
  const refused = new Map<Packet, unknown>();
  for (const [nth, outcome] of (await insertTogether(db, PACKETS, writes)).entries()) {
    if ('refused' in outcome) refused.set(packets[nth] as Packet, outcome.refused);
  }
  return refused;
}

const isDuplicate = (error: unknown): boolean => error instanceof MongoServerError && error.code === DUPLICATE;

function settle(one: Waiting, { repeated, refused }: Written): void {
  const at = refused.size === 0 ? -1 : one.packets.findIndex((packet) => refused.has(packet));
  if (at !== -1) {
    one.reject(toDatabaseError(refused.get(one.packets[at] as Packet)));
    return;
  }
  if (repeated.size === 0) {
    one.resolve({ packets: one.packets, repeated: 0 });
    return;
  }
  const packets = one.packets.map((packet) => (repeated.has(packet) ? repeated.get(packet) : packet));
  // It was too old, and was removed between the two questions.
  if (packets.includes(null)) one.reject(unavailable('a packet of the same _id was being removed'));
  else
    one.resolve({
      packets: packets as Packet[],
      repeated: one.packets.filter((packet) => repeated.has(packet)).length,
    });
}
