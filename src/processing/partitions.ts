/**
 * Partitions of the work that follows changes: each is leased to one instance at a time. All times are the database's. The
 * epoch grows with every owner, and fences off those before it.
 */
import type { Binary, Document } from 'mongodb';
import { isAfter } from '../core/position.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { endSessions } from '../platform/mongo/driver/sessions.js';

/** How far a partition is done, as it is stored. */
export interface Done {
  /** Of all tenants that are not named. */
  readonly rest: string;
  readonly tenants: readonly { readonly tenant: string; readonly position: string }[];
}

/** A partition as it is stored. */
export interface StoredPartition {
  readonly index: number;
  readonly owner: string | null;
  readonly epoch: number;
  /** Everything up to here is done. */
  readonly position: string;
  /** The same of all tenants that are not named; null where that is `position`. */
  readonly rest: string | null;
  /** Up to where those tenants are done that are not where the rest is. */
  readonly tenants: Done['tenants'];
  /** Grows with every commit. */
  readonly commits: number;
  /** The last number that an output was given. */
  readonly lastNumber: number;
  readonly isFree: boolean;
}

/** Who takes part, and what they hold. */
export interface Membership {
  readonly instances: readonly string[];
  readonly partitions: readonly StoredPartition[];
}

interface PartitionDocument {
  _id: number;
  owner: string | null;
  epoch: number;
  until: Date;
  position: string;
  rest?: string | null;
  tenants?: Done['tenants'];
  commits: number;
  lastNumber: number;
}

interface InstanceDocument {
  _id: string;
  until: Date;
  /** Those in which it may have a transaction open. */
  sessions?: Binary[];
}

export const partitionsOf = ({ db }: Database) => db.collection<PartitionDocument>('partitions');
const instancesOf = ({ db }: Database) => db.collection<InstanceDocument>('processors');

const FREE = { owner: null, epoch: 0, until: new Date(0), commits: 0, lastNumber: 0 };

/**
 * Creates the partitions that do not exist yet. Their first owners, which may take them much later, begin at this position: it
 * must be before everything that is acknowledged.
 */
export async function createPartitions(
  database: Database,
  { count, position }: { count: number; position: string },
): Promise<void> {
  const operations = Array.from({ length: count }, (_, index) => ({
    updateOne: { filter: { _id: index }, update: { $setOnInsert: { ...FREE, position } }, upsert: true },
  }));
  await mapDriverErrors(async () => {
    await partitionsOf(database).bulkWrite(operations, { ordered: false });
    // Versions in development created partitions without one.
    await partitionsOf(database).updateMany({ _id: { $gte: 0 }, position: { $type: 'null' } }, { $set: { position } });
  });
}

export interface Renewal {
  readonly index: number;
  readonly epoch: number;
  /** How far it is done, unless there was a commit since that one; null leaves that as it is. */
  readonly done: Done | null;
  readonly commits: number;
}

/** Renews the instance, its partitions and their positions; gives who takes part, and what they hold after it. */
export async function renewPartitions(
  database: Database,
  owner: string,
  { renewals, sessions, leaseMs }: { renewals: readonly Renewal[]; sessions: readonly Binary[]; leaseMs: number },
): Promise<Membership> {
  const until = { $add: ['$$NOW', leaseMs] };
  return mapDriverErrors(async () => {
    const own = { until, sessions: { $literal: sessions } };
    await instancesOf(database).updateOne({ _id: owner }, [{ $set: own }], { upsert: true });
    if (renewals.length > 0) {
      const operations = renewals.map((renewal) => ({
        updateOne: {
          filter: { _id: renewal.index, owner, epoch: renewal.epoch },
          update: [{ $set: { until, ...positionAfter(renewal) } }],
        },
      }));
      await partitionsOf(database).bulkWrite(operations, { ordered: false });
    }
    return readMembership(database);
  });
}

function positionAfter({ done, commits }: Renewal): Document {
  if (done === null) return {};
  const isCurrent = { $eq: ['$commits', commits] };
  return Object.fromEntries(
    Object.entries(toStoredDone(done)).map(([field, value]) => [
      field,
      { $cond: [isCurrent, { $literal: value }, `$${field}`] },
    ]),
  );
}

/** `position` holds for all tenants: versions that know no others go on from there. */
export function toStoredDone({ rest, tenants }: Done): Pick<StoredPartition, 'position' | 'rest' | 'tenants'> {
  const first = tenants.reduce((earliest, { position }) => (isAfter(earliest, position) ? position : earliest), rest);
  return { position: first, rest: tenants.length === 0 ? null : rest, tenants };
}

const IS_OVER = { $lt: ['$until', '$$NOW'] };
const INSTANCE_FIELDS = { isOver: IS_OVER, sessions: 1 };
const PARTITION_FIELDS = {
  isOver: IS_OVER,
  owner: 1,
  epoch: 1,
  position: 1,
  rest: 1,
  tenants: 1,
  commits: 1,
  lastNumber: 1,
};
/** In the order of the index. */
const BY_ID = { sort: { _id: 1 as const } };

async function readMembership(database: Database): Promise<Membership> {
  const [partitions, instances] = await Promise.all([
    partitionsOf(database)
      .find<PartitionDocument & { isOver: boolean }>({ _id: { $gte: 0 } }, { projection: PARTITION_FIELDS, ...BY_ID })
      .toArray(),
    instancesOf(database)
      .find<InstanceDocument & { isOver: boolean }>({ _id: { $gte: '' } }, { projection: INSTANCE_FIELDS, ...BY_ID })
      .toArray(),
  ]);
  const gone = instances.filter((one) => one.isOver);
  if (gone.length > 0) {
    await endSessions(
      database,
      gone.flatMap(({ sessions }) => sessions ?? []),
    );
    const over = { _id: { $in: gone.map(({ _id }) => _id) }, $expr: IS_OVER };
    await instancesOf(database).deleteMany(over);
  }
  return {
    instances: instances.filter((one) => !one.isOver).map(({ _id }) => _id),
    partitions: partitions.map(toPartition),
  };
}

const toPartition = (stored: PartitionDocument & { isOver: boolean }): StoredPartition => ({
  index: stored._id,
  owner: stored.owner,
  epoch: stored.epoch,
  position: stored.position,
  rest: stored.rest ?? null,
  tenants: stored.tenants ?? [],
  commits: stored.commits,
  lastNumber: stored.lastNumber,
  isFree: stored.isOver,
});

/** Takes a partition whose lease is over; null where another instance was quicker. */
export async function takePartition(
  database: Database,
  owner: string,
  { index, leaseMs }: { index: number; leaseMs: number },
): Promise<StoredPartition | null> {
  const free = { _id: index, $expr: IS_OVER };
  const taken = { owner, epoch: { $add: ['$epoch', 1] }, until: { $add: ['$$NOW', leaseMs] } };
  // One that was taken when nobody waits for that any more would be nobody's.
  const options = { returnDocument: 'after', maxTimeMS: Math.floor(leaseMs / 2) } as const;
  const found = await mapDriverErrors(() => partitionsOf(database).findOneAndUpdate(free, [{ $set: taken }], options));
  return found === null ? null : toPartition({ ...found, isOver: false });
}

/** Gives partitions back, with their positions. */
export async function releasePartitions(database: Database, owner: string, held: readonly Renewal[]): Promise<void> {
  if (held.length === 0) return;
  const operations = held.map((one) => ({
    updateOne: {
      filter: { _id: one.index, owner, epoch: one.epoch },
      update: [{ $set: { owner: null, until: new Date(0), ...positionAfter(one) } }],
    },
  }));
  await mapDriverErrors(() => partitionsOf(database).bulkWrite(operations, { ordered: false }));
}

/** The instance takes part no more. */
export async function removeInstance(database: Database, owner: string): Promise<void> {
  await mapDriverErrors(() => instancesOf(database).deleteOne({ _id: owner }));
}
