/**
 * Which device is connected where: a record per device, of its newest connection, and a sign of life per instance. All by
 * the database's clock, so that instances need not agree on theirs.
 */
import { type AnyBulkWriteOperation, type Document, ObjectId } from 'mongodb';
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
  /** Whether no newer connection took over since: then what was before it is not known. */
  readonly isNewest: boolean;
}

interface Instance {
  _id: string;
  seen: Date;
}

const recordsOf = ({ db }: Database) => db.collection('presence');
const instancesOf = ({ db }: Database) => db.collection<Instance>('instances');

/** From now on these are the devices' connections, whatever there was before; by their ids. */
export async function claimPresences(database: Database, held: readonly Held[]): Promise<Map<string, Claimed>> {
  // Of two connections of one device that come together the later one counts.
  const newest = [...new Map(held.map((one) => [one.objectId, one])).values()];
  const ids = newest.map(({ objectId }) => new ObjectId(objectId));
  const [first, ...others] = newest;
  const found = await translated(async () => {
    // Of one device a single command does both.
    if (first !== undefined && others.length === 0) return [await claimOne(database, first)];
    await recordsOf(database).bulkWrite(newest.map(toClaim), { ordered: false });
    return recordsOf(database)
      .find({ _id: { $in: ids } }, { batchSize: ids.length + 1 })
      .toArray();
  });
  const records = new Map<string, Document>(found.map((record) => [String(record._id), record]));
  return new Map(
    held.map(({ objectId, id }) => {
      const { connection, since, before = null } = records.get(objectId) ?? {};
      const isNewest = connection === id;
      return [id, { sinceMs: Number(since ?? 0), endedMs: isNewest ? before : null, isNewest }];
    }),
  );
}

const takenBy = ({ instance, id }: Held): Document[] => [
  { $set: { instance, connection: id, since: '$$NOW', before: '$ended', ended: null } },
];

async function claimOne(database: Database, held: Held): Promise<Document> {
  const filter = { _id: new ObjectId(held.objectId) };
  const options = { upsert: true, returnDocument: 'after' } as const;
  return (await recordsOf(database).findOneAndUpdate(filter, takenBy(held), options)) as Document;
}

function toClaim(held: Held): AnyBulkWriteOperation {
  return { updateOne: { filter: { _id: new ObjectId(held.objectId) }, update: takenBy(held), upsert: true } };
}

/** The connections are gone: those that are their devices' newest ones. `endedMs`: when they are said to have ended. */
export async function endPresences(database: Database, held: readonly Held[], endedMs: number): Promise<void> {
  const filter = {
    _id: { $in: held.map(({ objectId }) => new ObjectId(objectId)) },
    connection: { $in: held.map(({ id }) => id) },
    ended: null,
  };
  await translated(() => recordsOf(database).updateMany(filter, { $set: { ended: endedMs } }));
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

/** Whether this is the device's newest connection; what is asked in one turn is one question. */
export async function holdsPresence(database: Database, { objectId, id }: Held): Promise<boolean> {
  const held = await database.inTurn('presence', [objectId], async (asked: string[]) => {
    const filter = { _id: { $in: asked.map((one) => new ObjectId(one)) }, ended: null };
    const found = await translated(() => recordsOf(database).find(filter).toArray());
    return new Map(found.map(({ _id, connection }) => [String(_id), connection]));
  });
  return held.get(objectId) === id;
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
