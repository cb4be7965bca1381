/** The outbox of webhooks: a row for each message, from the event until the receiver has it, or was given up. */
import { type AnyBulkWriteOperation, type Document, type Filter, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import type { OutputWrite } from '../processing/commit.js';

export const DELIVERIES = 'deliveries';

const DELIVERY_STATES = ['pending', 'delivered', 'dead', 'withheld'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Why messages of a handler that has changed hands since are not sent. */
export const HANDED_OVER = 'the handler was shared with another user, or sends to another address, since';

/** Replays are behind all that happens: what is new does not wait for them. */
export const FIRST_REPLAYED_NUMBER = 2 ** 52;

/** A message that waits, or is being sent. */
export interface Delivery {
  readonly id: string;
  readonly handlerId: string;
  readonly partition: number;
  /** Its place among those of its handler and partition; of a replay `FIRST_REPLAYED_NUMBER` or more. */
  readonly number: number;
  /** The object it is about. */
  readonly objectId: string;
  readonly event: string;
  readonly body: string;
  readonly attempts: number;
  readonly timeMs: number;
  /** The batch that it belongs to since it was first sent so, and how many messages that had. */
  readonly batch: { readonly id: string; readonly size: number } | null;
  /** In whose hands the handler was (`StoredHandler.handover`). */
  readonly handover: string | null;
}

const deliveriesOf = ({ db }: Database) => db.collection(DELIVERIES);

export const newDeliveryId = (): string => new ObjectId().toHexString();

export function toInserts(deliveries: readonly Delivery[]): OutputWrite {
  return {
    collection: DELIVERIES,
    operations: deliveries.map((delivery) => ({ insertOne: { document: toDocument(delivery) } })),
  };
}

/** The same for rows that may be stored already: those stay as they are. */
export function toOnceInserts(deliveries: readonly Delivery[]): OutputWrite {
  const operations = deliveries.map((delivery) => {
    const { _id, ...$setOnInsert } = toDocument(delivery);
    return { updateOne: { filter: { _id }, update: { $setOnInsert }, upsert: true } };
  });
  return { collection: DELIVERIES, operations };
}

/** Stores messages of a replay, unless they are stored, and has those who own their partitions look for them. */
export async function insertReplayed(database: Database, deliveries: readonly Delivery[]): Promise<void> {
  if (deliveries.length === 0) return;
  const operations = deliveries.map((delivery) => {
    const { _id, ...fields } = toDocument(delivery);
    return { updateOne: { filter: { _id }, update: { $setOnInsert: { ...fields, replayed: true } }, upsert: true } };
  });
  const insert = () => deliveriesOf(database).bulkWrite(operations, { ordered: false });
  await mapDriverErrors(insert, LIMITS.databaseOperationMs);
  // The last one: where the receiver has it, it has those before it, or they are known to whoever sends them.
  const last = new Map(deliveries.map(({ partition, id }) => [partition, new ObjectId(id)]));
  const those = { _id: { $in: [...last.values()] }, state: 'pending' };
  await mapDriverErrors(() => deliveriesOf(database).updateMany(those, [{ $set: { poked: '$partition' } }]));
}

const toDocument = ({ id, handlerId, objectId, timeMs, batch: _, ...rest }: Delivery): Document => ({
  _id: new ObjectId(id),
  ...rest,
  handler: new ObjectId(handlerId),
  object: new ObjectId(objectId),
  bytes: Buffer.byteLength(rest.body),
  state: 'pending',
  time: timeMs,
});

const toDelivery = (found: Document): Delivery => ({
  id: String(found._id),
  handlerId: String(found.handler),
  objectId: String(found.object),
  partition: found.partition,
  number: found.number,
  event: found.event,
  body: found.body,
  attempts: found.attempts,
  timeMs: found.time,
  batch: batchIn(found),
  handover: found.handover ?? null,
});

const batchIn = ({ batch, batchSize }: Document): Delivery['batch'] =>
  typeof batch === 'string' ? { id: batch, size: Number(batchSize) } : null;

/** The oldest ones that wait, of a handler in a partition, but for those of these objects. */
export async function loadPending(
  database: Database,
  { handlerId, partition }: Pick<Delivery, 'handlerId' | 'partition'>,
  { exceptObjects, limit }: { exceptObjects: readonly string[]; limit: number },
): Promise<Delivery[]> {
  const filter: Filter<Document> = { partition, handler: new ObjectId(handlerId), state: 'pending' };
  if (exceptObjects.length > 0) filter.object = { $nin: exceptObjects.map((id) => new ObjectId(id)) };
  const find = () =>
    deliveriesOf(database)
      .find(filter, { sort: { number: 1 }, limit })
      .toArray();
  return (await mapDriverErrors(find, LIMITS.databaseOperationMs)).map(toDelivery);
}

/** What waits in a partition: its handlers, and until when which objects are not to be tried again. */
export interface PartitionBacklog {
  readonly handlerIds: readonly string[];
  readonly retries: readonly { readonly handlerId: string; readonly objectId: string; readonly nextMs: number }[];
}

export async function loadBacklog(database: Database, partition: number): Promise<PartitionBacklog> {
  const waiting = { partition, state: 'pending' };
  const [handlers, retries] = await mapDriverErrors(
    () =>
      Promise.all([
        deliveriesOf(database)
          .aggregate([{ $match: waiting }, { $group: { _id: '$handler' } }])
          .toArray(),
        deliveriesOf(database)
          .find({ ...waiting, next: { $gt: 0 } }, { projection: { handler: 1, object: 1, next: 1 } })
          .toArray(),
      ]),
    LIMITS.databaseOperationMs,
  );
  return {
    handlerIds: handlers.map(({ _id }) => String(_id)),
    retries: retries.map((row) => ({
      handlerId: String(row.handler),
      objectId: String(row.object),
      nextMs: Number(row.next),
    })),
  };
}

/** How an attempt ended, as it is stored. */
export interface DeliveryResult {
  readonly id: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string;
  readonly ms: number;
  readonly lastMs: number;
  /** When it is tried again; null where it is not. */
  readonly nextMs: number | null;
}

/** Stores how attempts ended. */
export async function storeResults(database: Database, results: readonly DeliveryResult[]): Promise<void> {
  const operations = results.map(toUpdate);
  await mapDriverErrors(
    () => deliveriesOf(database).bulkWrite(operations, { ordered: false }),
    LIMITS.databaseOperationMs,
  );
}

function toUpdate(result: DeliveryResult): AnyBulkWriteOperation {
  const { id, state, lastMs, nextMs, ...rest } = result;
  const isOver = state !== 'pending';
  const $set: Document = { ...rest, state, last: lastMs };
  if (nextMs !== null) $set.next = nextMs;
  const $unset: Document = { poked: 1 };
  if (nextMs === null) $unset.next = 1;
  if (isOver) $set._expires = expiryOf(state, lastMs);
  // Nobody needs the bytes of what the receiver has.
  if (state === 'delivered' || state === 'withheld') $unset.body = 1;
  // What was given up meanwhile stays so, unless the receiver has it.
  const filter = { _id: new ObjectId(id), ...(state !== 'delivered' && { state: 'pending' }) };
  return { updateOne: { filter, update: { $set, $unset } } };
}

/** When the record of a message that is over is removed. */
export const expiryOf = (state: DeliveryState, nowMs: number): Date =>
  new Date(nowMs + (state === 'delivered' ? LIMITS.webhookDeliveredKeptMs : LIMITS.webhookDeadKeptMs));

/** From now on they are one batch. */
export async function assignBatch(database: Database, ids: readonly string[], batch: string): Promise<void> {
  const filter = { _id: { $in: ids.map((id) => new ObjectId(id)) } };
  await mapDriverErrors(() => deliveriesOf(database).updateMany(filter, { $set: { batch, batchSize: ids.length } }));
}

/** A message that somebody wants to be sent; one of a replay waits for its turn. */
export interface PokedDelivery extends Pick<Delivery, 'id' | 'partition' | 'handlerId' | 'objectId'> {
  readonly isReplayed: boolean;
}

/** Messages of these partitions that somebody wants to be sent now. */
export async function takePoked(database: Database, partitions: readonly number[]): Promise<PokedDelivery[]> {
  const filter = { poked: { $in: [...partitions] } };
  const options = { projection: { partition: 1, handler: 1, object: 1, replayed: 1 }, limit: LIMITS.webhookBatch };
  const found = await mapDriverErrors(() => deliveriesOf(database).find(filter, options).toArray());
  if (found.length === 0) return [];
  const those = { _id: { $in: found.map(({ _id }) => _id) } };
  await mapDriverErrors(() => deliveriesOf(database).updateMany(those, { $unset: { poked: 1 } }));
  return found.map(({ _id, partition, handler, object, replayed }) => ({
    id: String(_id),
    partition,
    handlerId: String(handler),
    objectId: String(object),
    isReplayed: replayed === true,
  }));
}
