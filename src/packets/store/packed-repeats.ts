/** Finds packets in buckets by their names: one that is asked for, and packets that are sent again after they were packed. */
import type { Document } from 'mongodb';
import { LIMITS } from '../../core/limits.js';
import { BucketReader, DamagedBucketError } from '../../packed/unpack.js';
import { clock } from '../../platform/clock.js';
import { createFairQueue, type QueueCaller } from '../../platform/fair-queue.js';
import { type BatchOptions, rawBatches } from '../../platform/mongo/bson/raw-batches.js';
import { documentAt } from '../../platform/mongo/bson/reader.js';
import type { Database } from '../../platform/mongo/driver/client.js';
import { NOW, type Snapshot, snapshotOf } from '../../platform/mongo/driver/snapshot.js';
import { toIdFilters } from './bucket-ids.js';
import { readBuckets } from './bucket-runs.js';
import { BUCKETS, type StoredBucket, toBucket } from './buckets.js';
import { readReporting, toReadError } from './damaged-buckets.js';

/** Buckets in memory at a time: of all but the last, only the columns of names. */
const BATCH_BUCKETS = 16;
/** What tells which packets a bucket has. */
const NAMES = {
  'from.time': 1,
  'to.time': 1,
  n: 1,
  head: 1,
  'columns._id': 1,
  'columns._ts': 1,
  'columns.time': 1,
} as const;
/** The command that reads, of the buckets of a filter, which packets they have. */
export const toNamesFind = (filter: Document): Document => ({
  find: BUCKETS,
  filter,
  projection: NAMES,
  batchSize: BATCH_BUCKETS,
});

/** Whether there are buckets at all. */
export async function hasBuckets({ db }: Database): Promise<boolean> {
  return (await db.collection(BUCKETS).findOne({}, { projection: { _id: 1 }, hint: { _id: 1 } })) !== null;
}

export interface NamesSearch {
  readonly objectId: string;
  /** The packets' own `_id`s. */
  readonly ids: readonly Buffer[];
  /** Whether buckets are searched whose packets are still rows, too. */
  readonly withPending: boolean;
  readonly snapshot?: Snapshot;
  /** Whose turn it takes if it needs many buckets. */
  readonly caller: QueueCaller;
  /** Whether a damaged bucket has none of the packets; otherwise it is a 500. */
  readonly passesOverDamaged: boolean;
}

/** Those of these packets that are in buckets, by their own `_id`s: at one moment, whatever replaces buckets meanwhile. */
export async function findInBuckets(
  database: Database,
  { objectId, ids, withPending, snapshot = NOW, caller, passesOverDamaged }: NamesSearch,
): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  let at = snapshot;
  for (const filter of toIdFilters(objectId, ids)) {
    const counting = withPending ? filter : { ...filter, isPending: false };
    for await (const batch of rawBatches(database, { ...toNamesFind(counting), ...at }, inTurns(database, caller))) {
      if (at === NOW) at = snapshotOf(batch);
      for (const document of batch.documents) {
        const bucket = toBucket(document);
        try {
          const rows = readReporting(database, bucket.id, () => findRows(bucket, ids));
          if (rows.size > 0) await readRows(database, { objectId, bucket, rows }, { snapshot: at, found });
        } catch (error) {
          if (!(error instanceof DamagedBucketError)) throw error;
          if (!passesOverDamaged) throw toReadError(error);
        }
        if (found.size === ids.length) return found;
        // The next one may be one of many.
        await clock.nextTurn();
        database.stop?.throwIfAborted();
      }
    }
  }
  return found;
}

/** The first buckets of a command are read at once: there are no others, unless a device chose its `_id`s so that many may have them. */
function inTurns(database: Database, caller: QueueCaller): BatchOptions {
  let reads = 0;
  return {
    schedule: (read) =>
      reads++ === 0 ? read(database) : many.run(caller, () => read(database), database.stop ?? null),
  };
}

/** For look-ups that need many buckets. */
const many = createFairQueue('packed packets', {
  atOnce: LIMITS.packedNamesAtOnce,
  perCaller: 1,
  perTenant: 1,
  waiting: LIMITS.packedNamesWaiting,
  waitingPerCaller: LIMITS.packedNamesWaitingPerCaller,
  waitMs: LIMITS.databaseAnswerMs,
});

/** The row of each packet that the bucket has. */
function findRows(bucket: StoredBucket, ids: readonly Buffer[]): Map<string, number> {
  const rows = new Map<string, number>();
  const reader = new BucketReader(bucket);
  for (const id of ids) {
    const row = reader.findPacket(id);
    if (row !== -1) rows.set(id.toString('hex'), row);
  }
  return rows;
}

async function readRows(
  database: Database,
  {
    objectId,
    bucket,
    rows,
  }: { readonly objectId: string; readonly bucket: StoredBucket; readonly rows: ReadonlyMap<string, number> },
  { snapshot, found }: { readonly snapshot: Snapshot; readonly found: Map<string, Buffer> },
): Promise<void> {
  const span = { id: bucket.id, objectId };
  for (const whole of (await readBuckets(database, [span], { names: null, snapshot, options: {} })).values()) {
    const { memory, starts } = readReporting(database, whole.id, () => new BucketReader(whole).readRows());
    // Copies, so that the rest of the bucket is let go.
    for (const [id, row] of rows) found.set(id, Buffer.from(documentAt(memory, starts[row] as number)));
  }
}
