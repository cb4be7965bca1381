/** By which source and under which address an object takes commands, and which instance sends them. */
import { type Document, ObjectId } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

/** The way of commands to an object. */
export interface CommandRoute {
  readonly objectId: string;
  readonly sourceId: string;
  /** What the system behind the source calls the device. */
  readonly address: string;
  /** Tries in a row that failed. */
  readonly failures: number;
  /** Of this taking: another instance may take it when its time is over. */
  readonly lease: string;
}

const routes = ({ db }: Database) => db.collection('commandRoutes');

const toRoute = ({ _id, source, address, failures = 0, lease }: Document): CommandRoute => ({
  objectId: String(_id),
  sourceId: String(source),
  address,
  failures,
  lease: String(lease),
});

/** Records the address of an object. If it is new, commands that wait are due. */
export async function recordRoute(
  database: Database,
  { objectId, sourceId, address }: Pick<CommandRoute, 'objectId' | 'sourceId' | 'address'>,
  nowMs: number,
): Promise<void> {
  const fields = { source: new ObjectId(sourceId), address };
  const filter = { _id: new ObjectId(objectId) };
  const isOther = { $or: [{ $ne: ['$source', fields.source] }, { $ne: ['$address', address] }] };
  const due = { $cond: [isOther, nowMs, '$dueMs'] };
  const update = [{ $set: { ...fields, address: { $literal: address }, dueMs: due } }];
  await mapDriverErrors(() => routes(database).updateOne(filter, update, { upsert: true }));
}

/** Takes the commands of an object for a while; null if another instance has them, or a try is not due, or there is no route. */
export async function takeRoute(database: Database, objectId: string, nowMs: number): Promise<CommandRoute | null> {
  const filter = {
    _id: new ObjectId(objectId),
    $or: [{ dueMs: { $exists: false } }, { dueMs: null }, { dueMs: { $lte: nowMs } }],
  };
  const update = { $set: { dueMs: nowMs + LIMITS.downlinkLeaseMs, lease: new ObjectId() } };
  const options = { returnDocument: 'after' } as const;
  const taken = await mapDriverErrors(() => routes(database).findOneAndUpdate(filter, update, options));
  return taken === null ? null : toRoute(taken);
}

const isHeld = ({ objectId, lease }: CommandRoute): Document => ({
  _id: new ObjectId(objectId),
  lease: new ObjectId(lease),
});

/** Takes the commands of an object for a while longer; returns whether no other instance has taken them. */
export async function keepRoute(database: Database, route: CommandRoute, nowMs: number): Promise<boolean> {
  const update = { $set: { dueMs: nowMs + LIMITS.downlinkLeaseMs } };
  const { matchedCount } = await mapDriverErrors(() => routes(database).updateOne(isHeld(route), update));
  return matchedCount > 0;
}

/** Gives the commands of an object back: until the next one, or until a try in `retryMs`. */
export async function leaveRoute(
  database: Database,
  route: CommandRoute,
  retry: { readonly atMs: number; readonly failures: number } | null,
): Promise<void> {
  const update =
    retry === null
      ? { $unset: { dueMs: '', failures: '', lease: '' } }
      : { $set: { dueMs: retry.atMs, failures: retry.failures } };
  await mapDriverErrors(() => routes(database).updateOne(isHeld(route), update));
}

export async function removeRoute(database: Database, objectId: string): Promise<void> {
  await mapDriverErrors(() => routes(database).deleteOne({ _id: new ObjectId(objectId) }));
}

/** Objects whose next try is due, or whose instance has ended. */
export async function listDue(database: Database, nowMs: number): Promise<string[]> {
  const options = { sort: { dueMs: 1 }, limit: LIMITS.downlinkBatch, projection: { _id: 1 } } as const;
  const found = await mapDriverErrors(() =>
    routes(database)
      .find({ dueMs: { $exists: true, $lte: nowMs } }, options)
      .toArray(),
  );
  return found.map(({ _id }) => String(_id));
}

/** The next objects after `after`, in order. */
export async function listRoutes(database: Database, after: string | null): Promise<string[]> {
  const filter = after === null ? {} : { _id: { $gt: new ObjectId(after) } };
  const options = { sort: { _id: 1 }, limit: LIMITS.downlinkBatch, projection: { _id: 1 } } as const;
  const found = await mapDriverErrors(() => routes(database).find(filter, options).toArray());
  return found.map(({ _id }) => String(_id));
}
