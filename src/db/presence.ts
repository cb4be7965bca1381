/**
 * Which device is connected where: a record per device, of its newest connection, and a sign of life per instance. All by
 * the database's clock, so that instances need not agree on theirs.
 */
import { type Document, ObjectId } from 'mongodb';
import type { Database } from './connect.js';
import { translated } from './documents.js';

/** One connection of a device; `id` names it, `instance` the process that holds it. */
export interface Held {
  readonly objectId: string;
  readonly instance: string;
  readonly id: string;
}

export interface Claimed {
  /** When this connection took over, ms by the database's clock: the greatest is the newest. */
  readonly sinceMs: number;
  /** When the connection before it was given up, and its end is being told; null where there is nothing to outdo. */
  readonly endedMs: number | null;
}

interface Instance {
  _id: string;
  seen: Date;
}

const recordsOf = ({ db }: Database) => db.collection('presence');
const instancesOf = ({ db }: Database) => db.collection<Instance>('instances');

/** From now on this is the device's connection, whatever there was before. */
export async function claimPresence(database: Database, { objectId, instance, id }: Held): Promise<Claimed> {
  const taken = { instance, connection: id, since: '$$NOW', before: '$ended', ended: null };
  const record = await translated(() =>
    recordsOf(database).findOneAndUpdate({ _id: new ObjectId(objectId) }, [{ $set: taken }], {
      upsert: true,
      returnDocument: 'after',
    }),
  );
  const { since, before } = record as Document;
  return { sinceMs: since.getTime(), endedMs: before ?? null };
}

/** The connection is gone; false when it was not the device's newest one any more. `endedMs`: when it is said to have ended. */
export async function endPresence(database: Database, { objectId, id }: Held, endedMs: number): Promise<boolean> {
  const filter = { _id: new ObjectId(objectId), connection: id, ended: null };
  const { modifiedCount } = await translated(() => recordsOf(database).updateOne(filter, { $set: { ended: endedMs } }));
  return modifiedCount > 0;
}

/** Removes records whose end was told. */
export async function forgetPresence(
  database: Database,
  instance: string,
  objectIds: readonly string[],
): Promise<void> {
  const ids = objectIds.map((id) => new ObjectId(id));
  const filter = { _id: { $in: ids }, instance, ended: { $ne: null } };
  await translated(() => recordsOf(database).deleteMany(filter));
}

/** Which of these devices are connected, to whatever instance. */
export async function findPresent(database: Database, objectIds: readonly string[]): Promise<Set<string>> {
  const filter = { _id: { $in: objectIds.map((id) => new ObjectId(id)) }, ended: null };
  const found = await translated(() =>
    recordsOf(database)
      .find(filter, { projection: { _id: 1 } })
      .toArray(),
  );
  return new Set(found.map(({ _id }) => String(_id)));
}

/** Whether this is the device's newest connection. */
export async function holdsPresence(database: Database, { objectId, id }: Held): Promise<boolean> {
  const filter = { _id: new ObjectId(objectId), connection: id, ended: null };
  return (await translated(() => recordsOf(database).countDocuments(filter, { limit: 1 }))) > 0;
}

/** A sign of life. */
export async function renewInstance(database: Database, instance: string): Promise<void> {
  await translated(() =>
    instancesOf(database).updateOne({ _id: instance }, [{ $set: { seen: '$$NOW' } }], { upsert: true }),
  );
}

/** An instance that has been silent for this long: from now on the caller's to clear away, as long again. */
export async function takeSilentInstance(database: Database, silentMs: number): Promise<string | null> {
  const filter = { $expr: { $lt: ['$seen', { $subtract: ['$$NOW', silentMs] }] } };
  const taken = await translated(() => instancesOf(database).findOneAndUpdate(filter, [{ $set: { seen: '$$NOW' } }]));
  return taken?._id ?? null;
}

export async function removeInstance(database: Database, instance: string): Promise<void> {
  await translated(() => instancesOf(database).deleteOne({ _id: instance }));
}

/** Ends every connection of an instance that is gone. */
export async function endAllPresence(database: Database, instance: string, endedMs: number): Promise<void> {
  await translated(() => recordsOf(database).updateMany({ instance, ended: null }, { $set: { ended: endedMs } }), null);
}

/** Connections of an instance whose end is to be told. */
export async function listEnded(
  database: Database,
  instance: string,
  limit: number,
): Promise<(Held & { endedMs: number })[]> {
  const found = await translated(() =>
    recordsOf(database)
      .find({ instance, ended: { $ne: null } }, { limit })
      .toArray(),
  );
  return found.map(({ _id, connection, ended }: Document) => ({
    objectId: String(_id),
    instance,
    id: connection,
    endedMs: ended,
  }));
}
