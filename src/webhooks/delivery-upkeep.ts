/** Keeps the outbox bounded: counts queues, gives up their oldest messages, and removes what nobody needs. */

import { type Document, type Filter, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { clock } from '../platform/clock.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { DELIVERIES, expiryOf, HANDED_OVER } from './deliveries.js';
import { findHandover } from './handlers.js';

/** Messages by their number, and the bytes of their bodies. */
export interface QueueSize {
  readonly rows: number;
  readonly bytes: number;
}

const deliveriesOf = ({ db }: Database) => db.collection(DELIVERIES);
/** The index of what waits and what is dead, by handler and age. It contains all that is counted. */
const BY_AGE = { handler: 1, state: 1, time: 1, bytes: 1 } as const;

/** How much waits in the queue of a handler. */
export async function countQueue(database: Database, handlerId: string): Promise<QueueSize> {
  const pipeline = [
    { $match: { handler: new ObjectId(handlerId), state: 'pending' } },
    { $group: { _id: null, rows: { $sum: 1 }, bytes: { $sum: '$bytes' } } },
  ];
  const count = () => deliveriesOf(database).aggregate<QueueSize>(pipeline, { hint: BY_AGE }).toArray();
  const [size] = await mapDriverErrors(count, LIMITS.databaseOperationMs);
  return { rows: size?.rows ?? 0, bytes: size?.bytes ?? 0 };
}

/** The same, at most `max` messages. */
export function countPending(database: Database, handlerId: string, max: number): Promise<number> {
  const filter = { handler: new ObjectId(handlerId), state: 'pending' };
  return mapDriverErrors(() => deliveriesOf(database).countDocuments(filter, { limit: max, hint: BY_AGE }));
}

/** How many messages wait for these handlers; at most `webhookCountedRows`. Passes by what no longer waits. */
export function countWaiting(database: Database, handlerIds: readonly string[]): Promise<number> {
  const filter = { handler: { $in: handlerIds.map((id) => new ObjectId(id)) }, state: 'pending' };
  const options = { hint: BY_AGE, limit: LIMITS.webhookCountedRows } as const;
  return mapDriverErrors(() => deliveriesOf(database).countDocuments(filter, options), LIMITS.databaseOperationMs);
}

/**
 * Gives up the oldest waiting messages of a handler until so many, and so many bytes, are gone; returns how many. Their
 * records stay, without the bodies.
 */
export async function giveUpOldest(
  database: Database,
  handlerId: string,
  { excess, error, nowMs }: { excess: QueueSize; error: string; nowMs: number },
): Promise<number> {
  const waiting = { handler: new ObjectId(handlerId), state: 'pending' };
  const dead = { $set: deadFields(error, nowMs), $unset: { ...NO_MORE_TRIES, body: 1 } };
  let rows = excess.rows;
  let bytes = excess.bytes;
  let count = 0;
  while (rows > 0 || bytes > 0) {
    const found = await findOldest(database, waiting, bytes > 0 ? LIMITS.webhookSweepBatch : rows);
    if (found.length === 0) break;
    const taken = takeUntil(found, { rows, bytes });
    rows -= taken.length;
    bytes -= taken.reduce((sum, one) => sum + Number(one.bytes), 0);
    count += await update(database, { _id: { $in: taken.map(({ _id }) => _id) }, state: 'pending' }, dead);
  }
  return count;
}

function takeUntil(found: readonly Document[], { rows, bytes }: QueueSize): readonly Document[] {
  let count = 0;
  let sum = 0;
  while (count < found.length && (count < rows || sum < bytes)) sum += Number(found[count++]?.bytes);
  return found.slice(0, count);
}

/** Gives up messages of a handler that were created before that time; returns how many. They can be sent again. */
export function giveUpLate(
  database: Database,
  handlerId: string,
  { beforeMs, error, nowMs }: { beforeMs: number; error: string; nowMs: number },
): Promise<number> {
  const dead = { $set: deadFields(error, nowMs), $unset: NO_MORE_TRIES };
  const late = { handler: new ObjectId(handlerId), state: 'pending', time: { $lt: beforeMs } };
  return inSteps(database, late, (step) => update(database, { ...step, state: 'pending' }, dead));
}

/** Removes the oldest dead messages of a handler beyond `webhookDeadRows`; returns how many. */
export async function trimDead(database: Database, handlerId: string): Promise<number> {
  const dead = { handler: new ObjectId(handlerId), state: 'dead' };
  const count = () => deliveriesOf(database).countDocuments(dead, { hint: BY_AGE });
  const surplus = (await mapDriverErrors(count, LIMITS.databaseOperationMs)) - LIMITS.webhookDeadRows;
  let removed = 0;
  while (removed < surplus) {
    const found = await findOldest(database, dead, surplus - removed);
    if (found.length === 0) break;
    removed += await remove(database, { _id: { $in: found.map(({ _id }) => _id) }, state: 'dead' });
  }
  return removed;
}

/** The handlers that have messages: those that are there, and those that were removed. */
export async function findDeliveryHandlers(database: Database): Promise<{ present: string[]; removed: string[] }> {
  const ids: ObjectId[] = await mapDriverErrors(
    () => deliveriesOf(database).distinct('handler'),
    LIMITS.databaseOperationMs,
  );
  // After the messages: a handler is there before its first message is. What is not durable yet may still come to nothing.
  const options = { projection: { _id: 1 }, readConcern: { level: 'majority' } } as const;
  const find = () =>
    database.db
      .collection('handlers')
      .find({ _id: { $in: ids } }, options)
      .toArray();
  const found = new Set((await mapDriverErrors(find)).map(({ _id }) => String(_id)));
  const all = ids.map(String);
  return { present: all.filter((id) => found.has(id)), removed: all.filter((id) => !found.has(id)) };
}

/** Takes from a handler what waits, or can be sent again, of the time before it changed hands; returns how many. */
export async function withholdFormer(database: Database, handlerId: string, nowMs: number): Promise<number> {
  const handover = await findHandover(database, handlerId);
  if (handover === null) return 0;
  const former = {
    handler: new ObjectId(handlerId),
    state: { $in: ['pending', 'dead'] },
    handover: { $ne: handover },
    body: { $exists: true },
  };
  const $set = { state: 'withheld', error: HANDED_OVER, last: nowMs, _expires: expiryOf('withheld', nowMs) };
  const withheld = { $set, $unset: { ...NO_MORE_TRIES, body: 1 } };
  return inSteps(database, former, (step) => update(database, { ...step, state: former.state }, withheld));
}

/** Removes all messages of a handler that is gone; returns how many. */
export function removeDeliveries(database: Database, handlerId: string): Promise<number> {
  return inSteps(database, { handler: new ObjectId(handlerId) }, (step) => remove(database, step));
}

const deadFields = (error: string, nowMs: number): Document => ({
  state: 'dead',
  error,
  last: nowMs,
  _expires: expiryOf('dead', nowMs),
});
const NO_MORE_TRIES = { next: 1, poked: 1 } as const;

async function findOldest(database: Database, filter: Filter<Document>, max: number): Promise<Document[]> {
  const limit = Math.min(max, LIMITS.webhookSweepBatch);
  const options = { sort: { time: 1 }, limit, projection: { bytes: 1 }, hint: BY_AGE } as const;
  return mapDriverErrors(() => deliveriesOf(database).find(filter, options).toArray(), LIMITS.databaseOperationMs);
}

async function update(database: Database, filter: Filter<Document>, change: Document): Promise<number> {
  const { modifiedCount } = await mapDriverErrors(() => deliveriesOf(database).updateMany(filter, change));
  return modifiedCount;
}

async function remove(database: Database, filter: Filter<Document>): Promise<number> {
  const { deletedCount } = await mapDriverErrors(() => deliveriesOf(database).deleteMany(filter));
  return deletedCount;
}

/** Works through all that matches in short steps, with pauses as long as the steps. */
async function inSteps(
  database: Database,
  filter: Filter<Document>,
  work: (step: Filter<Document>) => Promise<number>,
): Promise<number> {
  const options = { projection: { _id: 1 }, limit: LIMITS.webhookSweepBatch };
  for (let done = 0; ; ) {
    const startMs = clock.steadyMs();
    const found = await mapDriverErrors(
      () => deliveriesOf(database).find(filter, options).toArray(),
      LIMITS.databaseOperationMs,
    );
    if (found.length === 0) return done;
    done += await work({ _id: { $in: found.map(({ _id }) => _id) } });
    if (found.length < options.limit) return done;
    await clock.wait(clock.steadyMs() - startMs);
  }
}
