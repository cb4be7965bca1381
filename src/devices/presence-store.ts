/**
 * Stores which device is connected to which instance: a record per device with its newest connection, a heartbeat per instance.
 * All times come from the database's clock, because the clocks of instances may differ.
 */
import { type AnyBulkWriteOperation, type Document, ObjectId } from 'mongodb';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';

/** A connection of a device; `id` names the connection, `instance` its process. */
export interface HeldDevice {
  readonly objectId: string;
  readonly instance: string;
  readonly id: string;
}

/** A connection that has ended. */
export interface EndedDevice extends HeldDevice {
  readonly endedMs: number;
}

export interface PresenceClaim {
  /** When this connection took over, in ms by the database's clock. */
  readonly sinceMs: number;
  /** When the previous connection ended, while its end is not published yet; else null. */
  readonly endedMs: number | null;
  /** Whether the previous connection had not ended, as far as the database knows. */
  readonly hasTakenOver: boolean;
  /** Whether this is still the newest connection; otherwise the end of the previous one is unknown. */
  readonly isNewest: boolean;
}

interface Instance {
  _id: string;
  seen: Date;
}

const recordsOf = ({ db }: Database) => db.collection('presence');
const instancesOf = ({ db }: Database) => db.collection<Instance>('instances');

/** Makes these the current connections of their devices. Returns the claims by connection id. */
export async function claimPresences(
  database: Database,
  held: readonly HeldDevice[],
): Promise<Map<string, PresenceClaim>> {
  // Of several connections of one device, the last one wins.
  const newest = [...new Map(held.map((one) => [one.objectId, one])).values()];
  const ids = newest.map(({ objectId }) => new ObjectId(objectId));
  const [first, ...others] = newest;
  const found = await mapDriverErrors(async () => {
    // For one device, a single command writes and reads.
    if (first !== undefined && others.length === 0) return [await claimOne(database, first)];
    await recordsOf(database).bulkWrite(newest.map(toClaim), { ordered: false });
    return recordsOf(database)
      .find({ _id: { $in: ids } }, { batchSize: ids.length + 1 })
      .toArray();
  });
  const records = new Map<string, Document>(found.map((record) => [String(record._id), record]));
  return new Map(
    held.map(({ objectId, id }) => {
      const { connection, since, before = null, wasHeld } = records.get(objectId) ?? {};
      const isNewest = connection === id;
      const endedMs = isNewest ? before : null;
      return [id, { sinceMs: Number(since ?? 0), endedMs, hasTakenOver: wasHeld === true, isNewest }];
    }),
  );
}

// A missing record has no `ended`, which differs from null.
const takenBy = ({ instance, id }: HeldDevice): Document[] => [
  {
    $set: {
      instance,
      connection: id,
      since: '$$NOW',
      before: '$ended',
      wasHeld: { $eq: ['$ended', null] },
      ended: null,
    },
  },
];

async function claimOne(database: Database, held: HeldDevice): Promise<Document> {
  const filter = { _id: new ObjectId(held.objectId) };
  const options = { upsert: true, returnDocument: 'after' } as const;
  return (await recordsOf(database).findOneAndUpdate(filter, takenBy(held), options)) as Document;
}

function toClaim(held: HeldDevice): AnyBulkWriteOperation {
  return { updateOne: { filter: { _id: new ObjectId(held.objectId) }, update: takenBy(held), upsert: true } };
}

/** Marks closed connections as ended at `endedMs`, unless their devices have newer ones. */
export async function endPresences(database: Database, held: readonly HeldDevice[], endedMs: number): Promise<void> {
  const filter = {
    _id: { $in: held.map(({ objectId }) => new ObjectId(objectId)) },
    connection: { $in: held.map(({ id }) => id) },
    ended: null,
  };
  await mapDriverErrors(() => recordsOf(database).updateMany(filter, { $set: { ended: endedMs } }));
}

/** Removes records whose end is published. One that its device has changed since stays. */
export async function removeEndedPresences(database: Database, ended: readonly EndedDevice[]): Promise<void> {
  const removals = ended.map(({ objectId, instance, id, endedMs }) => ({
    deleteOne: { filter: { _id: new ObjectId(objectId), instance, connection: id, ended: endedMs } },
  }));
  await mapDriverErrors(() => recordsOf(database).bulkWrite(removals, { ordered: false }));
}

/** The connected ones among these devices, on any instance. */
export async function findPresent(database: Database, objectIds: readonly string[]): Promise<Set<string>> {
  const filter = { _id: { $in: objectIds.map((id) => new ObjectId(id)) }, ended: null };
  const found = await mapDriverErrors(() =>
    recordsOf(database)
      .find(filter, { projection: { _id: 1 } })
      .toArray(),
  );
  return new Set(found.map(({ _id }) => String(_id)));
}

/** The newest connection of a device, as far as the database knows. */
export interface KnownConnection {
  readonly id: string;
  readonly isEnded: boolean;
}

/** Null where there is none; calls in one iteration of the event loop share a query. */
export async function findConnection(database: Database, objectId: string): Promise<KnownConnection | null> {
  const known = await database.batch('presence', [objectId], async (ids: string[]) => {
    const filter = { _id: { $in: ids.map((one) => new ObjectId(one)) } };
    const found = await mapDriverErrors(() => recordsOf(database).find(filter).toArray());
    return new Map(
      found.map(({ _id, connection, ended }) => [String(_id), { id: connection, isEnded: ended !== null }]),
    );
  });
  return known.get(objectId) ?? null;
}

/** Stores a heartbeat. */
export async function renewInstance(database: Database, instance: string): Promise<void> {
  await mapDriverErrors(() =>
    instancesOf(database).updateOne({ _id: instance }, [{ $set: { seen: '$$NOW' } }], { upsert: true }),
  );
}

/** Claims an instance without a heartbeat for `silentMs`, to clean up after it. The claim lasts as long. */
export async function takeSilentInstance(database: Database, silentMs: number): Promise<string | null> {
  const filter = { $expr: { $lt: ['$seen', { $subtract: ['$$NOW', silentMs] }] } };
  const taken = await mapDriverErrors(() =>
    instancesOf(database).findOneAndUpdate(filter, [{ $set: { seen: '$$NOW' } }]),
  );
  return taken?._id ?? null;
}

export async function removeInstance(database: Database, instance: string): Promise<void> {
  await mapDriverErrors(() => instancesOf(database).deleteOne({ _id: instance }));
}

/** Ends all connections of a lost instance. */
export async function endAllPresence(database: Database, instance: string, endedMs: number): Promise<void> {
  await mapDriverErrors(
    () => recordsOf(database).updateMany({ instance, ended: null }, { $set: { ended: endedMs } }),
    null,
  );
}

/** Connections of an instance whose end is not published yet. */
export async function listEnded(database: Database, instance: string, limit: number): Promise<EndedDevice[]> {
  const filter = { instance, ended: { $ne: null } };
  const found = await mapDriverErrors(() => recordsOf(database).find(filter, { limit }).toArray());
  return found.map(toEnded);
}

/** Those of these connections that are still the newest of their devices, and ended. */
export async function findStillEnded(database: Database, ended: readonly EndedDevice[]): Promise<EndedDevice[]> {
  const filter = { _id: { $in: ended.map(({ objectId }) => new ObjectId(objectId)) }, ended: { $ne: null } };
  const options = { batchSize: ended.length + 1 };
  const found = await mapDriverErrors(() => recordsOf(database).find(filter, options).toArray());
  const stored = new Map(found.map(toEnded).map((one) => [one.objectId, one]));
  return ended.filter(({ objectId, id, endedMs }) => {
    const now = stored.get(objectId);
    return now?.id === id && now.endedMs === endedMs;
  });
}

const toEnded = ({ _id, instance, connection, ended }: Document): EndedDevice => ({
  objectId: String(_id),
  instance,
  id: connection,
  endedMs: ended,
});
