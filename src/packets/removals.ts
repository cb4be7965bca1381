/**
 * Removes the packets of an interval on request. A request is stored before it is answered. One instance at a time processes the
 * requests round-robin, so that a long one blocks no other, and continues those of an instance that stopped.
 */

import { ObjectId } from 'mongodb';
import { tooManyRequests, unavailable } from '../core/errors.js';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { acquireLease } from '../platform/mongo/driver/lease.js';
import type { StampRange } from './store/packed-counts.js';
import type { PacketQuery } from './store/query.js';
import { countPackets, findStampRange } from './store/reader.js';
import { removePacketsOf } from './store/removal.js';
import { REMOVALS } from './store/waiting-removals.js';

/** The packets of an object between two times, both included, that arrived until `stampUs`, or are in `ahead`. */
export interface PacketInterval {
  readonly objectId: string;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly stampUs: number;
  /** The stamps, both included, of packets that arrived before while a server's clock was ahead. */
  readonly ahead: StampRange | null;
}

/** The caller, for the security event. */
export interface Requester {
  readonly userId: string;
  readonly login: string;
  readonly address: string;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
}

export interface Removal extends PacketInterval {
  readonly by: Requester;
}

type Stored = Omit<Removal, 'objectId'> & {
  readonly _id: ObjectId;
  readonly object: ObjectId;
  readonly removed: number;
};

export interface RemovalOptions {
  readonly database: Database;
  /** Called when a removal is complete; at least `packets` were removed. May be called again, with the same `_id`, after a crash. */
  readonly onRemoved: (removal: Removal & { readonly _id: ObjectId }, packets: number) => Promise<void>;
  readonly log: { warn(details: object, message: string): void };
}

export interface Removals {
  /** Stores a request, which is processed soon. Throws 429, 503. */
  request(removal: Removal): Promise<void>;
  stop(): Promise<void>;
}

/** Counts the packets that a removal would remove. */
export const countInterval = (database: Database, interval: PacketInterval): Promise<number> =>
  countPackets(database, { objectIds: [interval.objectId], ...toRanges(interval) });

function toRanges({ fromMs, toMs, stampUs, ahead }: PacketInterval): Pick<PacketQuery, 'time' | 'stamps'> {
  const stamps = [{ to: stampUs }, ...(ahead == null ? [] : [{ from: ahead.fromUs, to: ahead.toUs }])];
  return { time: { from: fromMs, to: toMs }, stamps };
}

/**
 * The stamps of packets in the interval that are stored already, and yet are later than any that could arrive while they are looked for:
 * the clock of the server that stored them has gone back since. Null if there are none, or if that takes too long to find.
 */
export function findAhead(
  database: Database,
  { objectId, fromMs, toMs, stampUs }: Omit<PacketInterval, 'ahead'>,
): Promise<StampRange | null> {
  const stamps = [{ above: stampUs + 2 * LIMITS.removalAheadMs * 1_000 }];
  const later = { objectIds: [objectId], time: { from: fromMs, to: toMs }, stamps };
  return findStampRange(database, later, LIMITS.removalAheadMs);
}

/** The interval as security events name it. */
export function toFields({ fromMs, toMs }: Pick<PacketInterval, 'fromMs' | 'toMs'>): string[] {
  const field = (name: string, ms: number | null) => (ms === null ? [] : [`${name}=${new Date(ms).toISOString()}`]);
  return [...field('from', fromMs), ...field('to', toMs)];
}

/** Stores at the object when packets of it were removed last. */
export async function noteRemoval({ db }: Database, objectId: string, packetsRemoved: number): Promise<void> {
  const object = { _id: new ObjectId(objectId) };
  // Always another value than before, even where the clock has gone back: only a change is an event.
  const next = { $cond: [{ $eq: ['$packetsRemoved', packetsRemoved] }, packetsRemoved + 1, packetsRemoved] };
  await mapDriverErrors(() => db.collection('objects').updateOne(object, [{ $set: { packetsRemoved: next } }]));
}

/** Processes requests until it is stopped. */
export function startRemovals(options: RemovalOptions): Removals {
  const stopping = new AbortController();
  let waking = new AbortController();
  const running = run(options, stopping.signal, () => {
    waking = new AbortController();
    return waking.signal;
  });
  return {
    async request(removal) {
      await store(options.database, removal);
      waking.abort();
    },
    stop() {
      stopping.abort();
      return running;
    },
  };
}

const requestsIn = ({ db }: Database) => db.collection<Stored>(REMOVALS);

async function store(database: Database, { objectId, ...removal }: Removal): Promise<void> {
  const requests = requestsIn(database);
  const own = { 'by.userId': removal.by.userId };
  const [ofCaller, inAll] = await mapDriverErrors(() =>
    Promise.all([
      requests.countDocuments(own, { limit: LIMITS.removalsWaitingPerCaller }),
      requests.estimatedDocumentCount(),
    ]),
  );
  if (ofCaller >= LIMITS.removalsWaitingPerCaller) throw tooManyRequests(1, 'too many removals of yours at once');
  if (inAll >= LIMITS.removalsWaiting) throw unavailable('too many removals at once');
  const document = { _id: new ObjectId(), object: new ObjectId(objectId), ...removal, removed: 0 };
  await mapDriverErrors(() => requests.insertOne(document));
}

async function run(options: RemovalOptions, signal: AbortSignal, nextWaking: () => AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const waking = nextWaking();
    try {
      await workThrough(options, signal);
    } catch (error) {
      if (!signal.aborted) options.log.warn({ err: error }, 'failed to remove packets as requested; retrying');
    }
    const either = AbortSignal.any([signal, waking]);
    await clock.wait(LIMITS.removalCheckMs, { signal: either }).catch(() => undefined);
  }
}

async function workThrough(options: RemovalOptions, signal: AbortSignal): Promise<void> {
  const isThere = await mapDriverErrors(() =>
    requestsIn(options.database).findOne({}, { projection: { _id: 1 }, sort: { _id: 1 } }),
  );
  const lease = isThere === null ? null : await acquireLease(options.database, 'removals', LIMITS.leaseMs);
  if (lease === null) return;
  const until = AbortSignal.any([signal, lease.lost]);
  try {
    for (let isDone = false; !isDone && !until.aborted; ) isDone = await giveEachATurn(options, until);
  } finally {
    await lease.release();
  }
}

/** Returns whether no request is left. Processes all requests before it throws the error of one. */
async function giveEachATurn(options: RemovalOptions, signal: AbortSignal): Promise<boolean> {
  const waiting = await mapDriverErrors(() =>
    requestsIn(options.database)
      .find({}, { sort: { _id: 1 }, limit: LIMITS.removalsWaiting })
      .toArray(),
  );
  const failures: unknown[] = [];
  for (const one of waiting) {
    if (signal.aborted) break;
    // A failing request does not block the others.
    await work(options, one, signal).catch((error) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
  return waiting.length === 0;
}

async function work({ database, onRemoved }: RemovalOptions, stored: Stored, signal: AbortSignal): Promise<void> {
  const { _id, object, fromMs, toMs, stampUs, ahead, by } = stored;
  const removal = { _id, objectId: object.toHexString(), fromMs, toMs, stampUs, ahead, by };
  const timeSlice = AbortSignal.any([signal, AbortSignal.timeout(LIMITS.removalTurnMs)]);
  const removed = await removePacketsOf(database, {
    objectId: removal.objectId,
    which: toRanges(removal),
    signal: timeSlice,
    keepsPlaces: true,
  });
  if (timeSlice.aborted) {
    await mapDriverErrors(() => requestsIn(database).updateOne({ _id }, { $inc: { removed } }));
    return;
  }
  await onRemoved(removal, stored.removed + removed);
  await mapDriverErrors(() => requestsIn(database).deleteOne({ _id }));
}
