/** Stores incoming packets: durable before they are acknowledged, and written in groups. */

import { unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { isDuplicate, toDatabaseError, withTimeout } from '../platform/mongo/driver/errors.js';
import { insertTogether, type Write } from '../platform/mongo/driver/retryable-write.js';
import { findStored } from './duplicates.js';
import { createInsertOrder } from './insert-order.js';
import { createPackedRepeats } from './packed-repeats.js';
import { type Message, type Packet, type PacketSource, type Refusal, refusalError } from './packet.js';
import { createPendingPackets } from './pending-bytes.js';
import { PACKETS } from './store/query.js';
import { type PacketWrites, toPacketWrites } from './stored-packets.js';

export interface Ingested {
  readonly packets: readonly Packet[];
  /** The `_id`s of packets that were stored before. */
  readonly repeated: ReadonlySet<string>;
  /** Packets of an array that are too large. */
  readonly refused: readonly Refusal[];
}

interface Waiting extends PacketWrites {
  readonly objectId: string;
  /** When it began to wait, or its packets were looked up in buckets before; ms of the monotonic clock. */
  readonly sinceMs: number;
  readonly signal: AbortSignal | null;
  readonly resolve: (result: Ingested) => void;
  readonly reject: (error: unknown) => void;
}

export interface IngestOptions {
  /** When it is aborted, messages that still wait are not stored, and the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | null;
  /** Whether no packet of an array is stored if one is too large: the promise rejects with a 400. */
  readonly isAtomic?: boolean;
}

/** Stores the messages of one object; resolves when they are durable. */
export type Ingest = (source: PacketSource, messages: readonly Message[], options?: IngestOptions) => Promise<Ingested>;

const NONE: ReadonlyMap<Packet, Packet> = new Map();
const NO_IDS: ReadonlySet<string> = new Set();

/** Requests whose packets are written with one command. */
interface Group {
  readonly requests: readonly Waiting[];
  readonly objectIds: ReadonlySet<string>;
  /** Whether another group may run beside it: it is full, or so small that waiting for it would gain nothing. */
  readonly allowsMore: boolean;
}

/**
 * Writes packets in groups, because larger groups cost less: a group takes all packets that arrive in one iteration of the event
 * loop or during a write. Further groups run only beside full or small ones. Packets of one object are never written
 * concurrently.
 */
export function createIngest(database: Database, stampUs: () => number, packAfterMs: number | null = null): Ingest {
  const pending = createPendingPackets();
  const order = createInsertOrder();
  const write = createWriter(database);
  const repeats = createPackedRepeats(database);
  const packedAgeMs = Math.min(packAfterMs ?? LIMITS.packedAgeMs, LIMITS.packedAgeMs);
  return async (source, messages, { signal = null, isAtomic = false } = {}) => {
    if (messages.length === 0) return { packets: [], repeated: NO_IDS, refused: [] };
    const { objectId } = source;
    const reservation = pending.add(source.groupId, messages.length);
    const enqueue = (converted: PacketWrites, sinceMs: number, packed = NONE): Promise<Ingested> => {
      const { packets, refused } = converted;
      if (isAtomic && refused.length > 0) throw refusalError(refused, 0);
      if (packets.length === 0) return Promise.resolve({ packets, repeated: NO_IDS, refused });
      reservation.grow(countBytes(converted.writes));
      return packed.size === 0
        ? write(objectId, converted, { sinceMs, signal })
        : writeOthers(converted, packed, (others) => write(objectId, others, { sinceMs, signal }));
    };
    try {
      const converted = toPacketWrites({ source, messages, stampUs, clock: database.clock, packedAgeMs });
      // It may reject before `order` awaits it.
      if (converted instanceof Promise) converted.catch(() => undefined);
      else if (!order.hasPending(objectId) && (converted.named.length === 0 || repeats.areNone())) {
        return await enqueue(converted, clock.steadyMs());
      }
      const next = async () => {
        const all = await converted;
        // If the process stands still after the look-up, what was found nowhere may be packed meanwhile: that time counts, too.
        const sinceMs = clock.steadyMs();
        const packed = all.named.length === 0 ? NONE : await repeats.find(source, all.named);
        return { stored: enqueue(all, sinceMs, packed) };
      };
      return await (await order.after(objectId, next)).stored;
    } finally {
      reservation.remove();
    }
  };
}

/** Writes those that are not packed, and answers with the packed ones in their places. */
async function writeOthers(
  { packets, writes, named, refused }: PacketWrites,
  packed: ReadonlyMap<Packet, Packet>,
  write: (others: PacketWrites) => Promise<Ingested>,
): Promise<Ingested> {
  const isOther = (packet: Packet): boolean => !packed.has(packet);
  const others = packets.filter(isOther);
  const otherWrites = writes.filter((_, nth) => isOther(packets[nth] as Packet));
  const written =
    others.length === 0
      ? { packets: [], repeated: NO_IDS }
      : await write({ packets: others, writes: otherWrites, named, refused });
  const next = written.packets.values();
  return {
    packets: packets.map((packet) => packed.get(packet) ?? (next.next().value as Packet)),
    repeated: new Set([...written.repeated, ...[...packed.keys()].map(({ _id }) => _id)]),
    refused,
  };
}

/** Writes packets in groups, and those of one object in order. */
function createWriter(database: Database) {
  let waiting: Waiting[] = [];
  let isScheduled = false;
  let running: readonly Group[] = [];

  const begin = (): void => {
    const { aborted, wanted } = splitAborted(waiting);
    waiting = wanted;
    for (const { reject, signal } of aborted) reject(signal?.reason);
    while (mayBegin(running)) {
      const { group, left } = takeGroup(waiting, running);
      if (group.requests.length === 0) return;
      waiting = left;
      void run(group);
    }
  };
  const beginSoon = (): void => {
    if (isScheduled || !mayBegin(running)) return;
    isScheduled = true;
    clock.setImmediate(() => {
      isScheduled = false;
      begin();
    });
  };
  const run = async (group: Group): Promise<void> => {
    running = running.concat(group);
    await writeGroup(database, group.requests);
    // Answered clients often send again within this iteration: their packets join the next group.
    await clock.nextTurn();
    running = running.filter((one) => one !== group);
    begin();
  };

  return (objectId: string, converted: PacketWrites, since: Pick<Waiting, 'sinceMs' | 'signal'>) =>
    new Promise<Ingested>((resolve, reject) => {
      waiting.push({ objectId, ...converted, ...since, resolve, reject });
      if (!isBusy(running, objectId)) beginSoon();
    });
}

function countBytes(writes: readonly Write[]): number {
  let bytes = 0;
  for (const { bson } of writes) bytes += bson.length;
  return bytes;
}

function mayBegin(running: readonly Group[]): boolean {
  for (const { allowsMore } of running) if (!allowsMore) return false;
  return running.length < LIMITS.packetWritesAtOnce;
}

function isBusy(running: readonly Group[], objectId: string): boolean {
  for (const { objectIds } of running) if (objectIds.has(objectId)) return true;
  return false;
}

function splitAborted(waiting: Waiting[]): { aborted: readonly Waiting[]; wanted: Waiting[] } {
  const aborted = waiting.filter(({ signal }) => signal?.aborted);
  return { aborted, wanted: aborted.length === 0 ? waiting : waiting.filter(({ signal }) => !signal?.aborted) };
}

/** Takes requests for the next group, skipping those whose object is being written. */
function takeGroup(waiting: readonly Waiting[], running: readonly Group[]): { group: Group; left: Waiting[] } {
  const requests: Waiting[] = [];
  const left: Waiting[] = [];
  let packets = 0;
  const firstLeft = waiting.findIndex((one) => {
    if (isBusy(running, one.objectId)) left.push(one);
    else {
      packets += one.packets.length;
      if (requests.length > 0 && packets > LIMITS.packetsPerWrite) return true;
      requests.push(one);
    }
    return false;
  });
  const objectIds = new Set(requests.map(({ objectId }) => objectId));
  const isFull = firstLeft !== -1;
  const allowsMore = isFull || requests.length <= LIMITS.smallWriteRequests;
  return { group: { requests, objectIds, allowsMore }, left: isFull ? left.concat(waiting.slice(firstLeft)) : left };
}

/** The packets that a write did not store. */
interface Written {
  /** Packets that were stored before, mapped to the stored ones; null for a stored one that was removed meanwhile. */
  readonly repeated: ReadonlyMap<Packet, Packet | null>;
  /** All others, mapped to their errors. */
  readonly refused: ReadonlyMap<Packet, unknown>;
}

async function writeGroup(database: Database, group: readonly Waiting[]): Promise<void> {
  try {
    // The time limit counts from the arrival of the oldest request.
    const sinceMs = Math.min(...group.map((one) => one.sinceMs));
    const leftMs = LIMITS.databaseAnswerMs - (clock.steadyMs() - sinceMs);
    if (leftMs <= 0) throw unavailable('the database is slow; none of these packets was stored');
    const written = await withTimeout(() => writeAll(database, group), leftMs);
    for (const one of group) settle(one, written);
  } catch (error) {
    for (const one of group) one.reject(toDatabaseError(error));
  }
}

async function writeAll(database: Database, group: readonly Waiting[]): Promise<Written> {
  const packets = group.flatMap((one) => one.packets);
  const writes = group.flatMap((one) => one.writes);
  const refused = new Map<Packet, unknown>();
  for (const [index, outcome] of (await insertTogether(database.db, PACKETS, writes)).entries()) {
    if ('error' in outcome) refused.set(packets[index] as Packet, outcome.error);
  }
  const duplicates = [...refused].filter(([, error]) => isDuplicate(error)).map(([packet]) => packet);
  if (duplicates.length === 0) return { repeated: NONE, refused };
  for (const packet of duplicates) refused.delete(packet);
  return { repeated: await findStored(database, duplicates), refused };
}

function settle(one: Waiting, { repeated, refused }: Written): void {
  const first = refused.size === 0 ? undefined : one.packets.find((packet) => refused.has(packet));
  if (first !== undefined) {
    one.reject(toDatabaseError(refused.get(first)));
    return;
  }
  if (repeated.size === 0) {
    one.resolve({ packets: one.packets, repeated: NO_IDS, refused: one.refused });
    return;
  }
  const packets = one.packets.map((packet) => (repeated.has(packet) ? repeated.get(packet) : packet));
  // The stored packet was removed because of its age between the two queries.
  if (packets.includes(null)) one.reject(unavailable('a packet with the same _id was being removed'));
  else
    one.resolve({
      packets: packets as Packet[],
      repeated: new Set(one.packets.filter((packet) => repeated.has(packet)).map(({ _id }) => _id)),
      refused: one.refused,
    });
}
