/** The collections: names, indexes, pre-images and compression. */
import {
  type Collection,
  type CreateCollectionOptions,
  type Db,
  type IndexDescription,
  MongoServerError,
  ObjectId,
} from 'mongodb';
import { COMMAND_STATUSES, OPEN_STATUSES } from '../../../core/command.js';
import { STORES, type Store } from '../../../core/stores.js';
import type { Database } from '../driver/client.js';
import { DELIVERY_INDEXES } from './delivery-indexes.js';
import { visibilityIndexes } from './visibility.js';

const NAMESPACE_EXISTS = 48;
/** BadValue, Unauthorized, CommandNotFound, InvalidOptions, CommandNotSupported. */
const REFUSED_OPTIONS: ReadonlySet<unknown> = new Set([2, 13, 59, 72, 115]);

/** The collection of a store. Custom stores have a prefix, so that they never collide with the service's own collections. */
export function collectionOf(database: Database, store: Pick<Store, 'name'>): Collection {
  return database.db.collection(collectionName(store.name));
}

export function collectionName(storeName: string): string {
  return STORES.has(storeName) ? storeName : `custom.${storeName}`;
}

const SESSION_INDEXES: IndexDescription[] = [
  { key: { 'session.user': 1 } },
  { key: { expires: 1 }, expireAfterSeconds: 0 },
];

/** What rate-limiter-flexible would create: each of its limiters by itself, and in the background. */
const ATTEMPT_INDEXES: IndexDescription[] = [
  { key: { expire: -1 }, expireAfterSeconds: 0 },
  { key: { key: 1 }, unique: true },
];

const COMMAND_ROUTE_INDEXES: IndexDescription[] = [
  { key: { dueMs: 1 }, partialFilterExpression: { dueMs: { $exists: true } } },
  { key: { source: 1 } },
];

/**
 * Where the buckets of an object lie, without reading a document, with all that a look-up compares; and those that do not count yet.
 * `packets/store/buckets.ts` names the first one in its commands.
 */
const BUCKET_INDEXES: IndexDescription[] = [
  {
    name: 'places',
    key: {
      _oid: 1,
      isPending: 1,
      'to.time': 1,
      'to.stamp': 1,
      'from.time': 1,
      'from.stamp': 1,
      'stamps.from': 1,
      'stamps.to': 1,
      n: 1,
      bytes: 1,
      _id: 1,
    },
  },
  // Which may have a packet: by the first bytes of its `_id`, or by a digest of it (packets/store/bucket-ids.ts).
  { key: { _oid: 1, 'near.to': 1, 'near.from': 1 } },
  { key: { _oid: 1, chosen: 1 } },
  { key: { 'mark.step': 1 }, partialFilterExpression: { isPending: true } },
];

/** Creates missing collections, concurrently: on a new database each one waits for the disk. */
export async function prepareCollections(db: Db): Promise<void> {
  const present = new Set((await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name));
  // No pre-images for packets and sessions: nothing reads them.
  await Promise.all([
    ...[...STORES.values()].map((store) => prepareCollection(db, store, present)),
    prepare(db, 'packets', [{ key: { _oid: 1, time: 1, _ts: 1 } }], { present, options: COMPRESSED }),
    prepare(db, 'packedPackets', BUCKET_INDEXES, { present, options: COMPRESSED }),
    prepare(db, 'sessions', SESSION_INDEXES, { present, options: {} }),
    prepare(db, 'attempts', ATTEMPT_INDEXES, { present, options: {} }),
    prepare(db, 'installation', [], { present, options: {} }),
    prepare(db, 'settings', [], { present, options: {} }),
    prepare(db, 'removals', [{ key: { 'by.userId': 1 } }], { present, options: {} }),
    prepare(db, 'removedPackets', [{ key: { expires: 1 }, expireAfterSeconds: 0 }], { present, options: {} }),
    prepare(db, 'refusedPackets', [{ key: { expires: 1 }, expireAfterSeconds: 0 }], { present, options: {} }),
    prepare(db, 'refusedPayloads', [{ key: { expires: 1 }, expireAfterSeconds: 0 }], { present, options: {} }),
    prepare(db, 'removalMarks', [{ key: { expires: 1 }, expireAfterSeconds: 0 }], { present, options: {} }),
    prepare(db, 'removedObjects', [{ key: { expires: 1 }, expireAfterSeconds: 0 }], { present, options: {} }),
    prepare(db, 'presence', [{ key: { instance: 1 } }], { present, options: WITH_IMAGES }),
    prepare(db, 'deliveries', DELIVERY_INDEXES, { present, options: {} }),
    prepare(db, 'commandRoutes', COMMAND_ROUTE_INDEXES, { present, options: {} }),
    prepare(db, 'replays', [{ key: { handler: 1 }, unique: true }], { present, options: {} }),
    prepare(db, 'alarmStates', [{ key: { partition: 1, due: 1 } }], { present, options: {} }),
    prepare(db, 'alarmNotices', [{ key: { partition: 1, due: 1 } }], { present, options: {} }),
    prepare(db, 'notifications', NOTIFICATION_INDEXES, { present, options: {} }),
    prepare(db, 'reportMails', [{ key: { _expires: 1 }, expireAfterSeconds: 0 }], { present, options: {} }),
    prepare(db, 'channelCodes', [{ key: { expires: 1 }, expireAfterSeconds: 0 }], { present, options: {} }),
    prepare(db, 'partitions', [], { present, options: {} }),
  ]);
}

/** Creates the collection of a store and its indexes, if they are missing. */
export async function prepareCollection(db: Db, store: Store, present: ReadonlySet<string> = new Set()): Promise<void> {
  await prepare(db, collectionName(store.name), indexesOf(store), { present, options: WITH_IMAGES });
}

async function prepare(
  db: Db,
  name: string,
  indexes: IndexDescription[],
  { present, options }: { present: ReadonlySet<string>; options: CreateCollectionOptions },
): Promise<void> {
  if (!present.has(name)) await createCollection(db, name, options);
  if (indexes.length > 0) await db.collection(name).createIndexes(indexes);
}

const WITH_IMAGES: CreateCollectionOptions = { changeStreamPreAndPostImages: { enabled: true } };

const ZSTD = { wiredTiger: { configString: 'block_compressor=zstd' } };
/** Most of the stored data is history: this halves its size, indexes included. */
const COMPRESSED: CreateCollectionOptions = {
  storageEngine: ZSTD,
  indexOptionDefaults: { storageEngine: ZSTD },
};

async function createCollection(db: Db, name: string, options: CreateCollectionOptions): Promise<void> {
  try {
    await db.createCollection(name, options);
  } catch (error) {
    if (!(error instanceof MongoServerError)) throw error;
    // Another storage engine, or a host that does not allow to choose the compression.
    if (options.storageEngine !== undefined && REFUSED_OPTIONS.has(error.code)) await createCollection(db, name, {});
    // Another instance has created it.
    else if (error.code !== NAMESPACE_EXISTS) throw error;
  }
}

/** The times of the outcomes of commands: each command has at most one of them. */
const END_TIMES = COMMAND_STATUSES.filter((status) => !OPEN_STATUSES.includes(status)).map(
  (status) => `times.${status}`,
);

/** For: all commands of an object, its open ones, its past events, expiry, and the commands that a connection has sent. */
const COMMAND_INDEXES: readonly IndexDescription[] = [
  { key: { object: 1, _id: 1 } },
  { key: { object: 1, status: 1, _id: 1 } },
  { key: { object: 1, time: 1, _id: 1 } },
  ...END_TIMES.map((time) => ({
    key: { object: 1, [time]: 1, _id: 1 } as const,
    partialFilterExpression: { [time]: { $exists: true } },
  })),
  { key: { expires: 1 }, partialFilterExpression: { status: { $in: [...OPEN_STATUSES] } } },
  { key: { _holder: 1 }, partialFilterExpression: { _holder: { $exists: true } } },
];

/** What is due in a partition, what waits and was sent over a channel, what an alarm has told, a digest stands for, and a report was sent with. */
const NOTIFICATION_INDEXES: IndexDescription[] = [
  {
    key: { partition: 1, next: 1, user: 1, channel: 1 },
    partialFilterExpression: { state: 'pending' },
  },
  { key: { user: 1, channel: 1, time: 1, _id: 1 }, partialFilterExpression: { state: 'pending' } },
  { key: { user: 1, channel: 1, sent: 1 }, partialFilterExpression: { sent: { $exists: true } } },
  { key: { alarm: 1, user: 1 } },
  { key: { digest: 1 }, partialFilterExpression: { digest: { $exists: true } } },
  { key: { mail: 1 }, partialFilterExpression: { mail: { $exists: true } } },
  { key: { _expires: 1 }, expireAfterSeconds: 0 },
];

/** For the alarms of an object, those that are open, its past events, the open ones of a rule, all open ones, and the latest of the others. */
const ALARM_INDEXES: readonly IndexDescription[] = [
  { key: { object: 1, status: 1, _id: 1 } },
  { key: { object: 1, raised: 1, _id: 1 } },
  { key: { object: 1, cleared: 1, _id: 1 } },
  { key: { rule: 1, status: 1, _id: 1 } },
  { key: { status: 1, _id: 1 } },
  { key: { status: 1, raised: -1, _id: 1 } },
];

/** Every `_id`: only queries that demand this of a field use the indexes below, so that lists keep to those in their order. */
export const ANY_ID = { $gte: new ObjectId('0'.repeat(24)) } as const;

/**
 * For the models and groups of the objects that a caller sees, without reading the objects (entities/through-objects.ts), and for the
 * few objects whose clock is wrong, which each instance reads when it starts (packets/wrong-clocks.ts).
 */
const OBJECT_INDEXES: readonly IndexDescription[] = [
  { key: { branch: 1, model: 1 }, partialFilterExpression: { model: ANY_ID } },
  { key: { owner: 1, model: 1 }, partialFilterExpression: { model: ANY_ID } },
  { key: { owner: 1, group: 1 }, partialFilterExpression: { group: ANY_ID } },
  { key: { access: 1, model: 1 }, partialFilterExpression: { model: ANY_ID } },
  { key: { access: 1, group: 1 }, partialFilterExpression: { group: ANY_ID } },
  { key: { wrongClock: 1 }, partialFilterExpression: { wrongClock: { $type: 'object' } } },
];

function indexesOf(store: Store): IndexDescription[] {
  const indexes = visibilityIndexes(store);
  for (const field of store.unique) {
    indexes.push({ key: { [field]: 1 }, unique: true, partialFilterExpression: { [field]: { $exists: true } } });
  }
  if (store.name === 'tokens') indexes.push({ key: { _expires: 1 }, expireAfterSeconds: 0 }, { key: { user: 1 } });
  if (store.name === 'tokens') {
    indexes.push({ key: { _parents: 1 }, partialFilterExpression: { _parents: { $exists: true } } });
    // Share links.
    indexes.push({
      key: { '_link.object': 1, _id: 1 },
      partialFilterExpression: { '_link.object': { $exists: true } },
    });
  }
  if (store.name === 'audit') indexes.push({ key: { _expires: 1 }, expireAfterSeconds: 0 });
  if (store.name === 'stores') indexes.push({ key: { name: 1, group: 1 }, unique: true });
  if (store.name === 'users') indexes.push({ key: { role: 1 } });
  if (store.name === 'objects') indexes.push(...OBJECT_INDEXES);
  if (store.throughObjects === 'groups') indexes.push({ key: { group: 1, _id: 1 } });
  if (store.name === 'commands') indexes.push(...COMMAND_INDEXES);
  if (store.name === 'alarms') indexes.push(...ALARM_INDEXES);
  if (store.name === 'schedules') {
    for (const field of ['asked', 'due']) {
      indexes.push({ key: { [field]: 1, _id: 1 }, partialFilterExpression: { [field]: { $gt: 0 } } });
    }
  }
  if (store.name === 'notes') indexes.push({ key: { object: 1, time: 1, _id: 1 } });
  return indexes;
}
