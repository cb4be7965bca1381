/** The connection to MongoDB: client, collections, indexes, pre-images; and its end. */
import {
  type Collection,
  type CreateCollectionOptions,
  type Db,
  type IndexDescription,
  MongoClient,
  type MongoClientOptions,
  MongoCompatibilityError,
  MongoServerError,
  MongoServerSelectionError,
} from 'mongodb';
import { ApiError } from '../errors.js';
import { OPEN_STATUSES } from '../model/command.js';
import { LIMITS } from '../model/limits.js';
import { STORES, type Store } from '../model/stores.js';
import type { Listing } from './asker.js';
import { translated } from './documents.js';
import { countPool } from './pool.js';
import { createInTurn, type InTurn } from './turn.js';

export interface Database {
  readonly client: MongoClient;
  readonly db: Db;
  /** Where commands over several collections go. */
  readonly admin: Db;
  readonly inTurn: InTurn;
  /** Who asks for a list of it, and what it waits for; absent where the service asks by itself. */
  readonly listing?: Listing;
  /** Aborted when nobody waits for what is read any more. */
  readonly stop?: AbortSignal;
}

const NAMESPACE_EXISTS = 48;
/** BadValue, Unauthorized, CommandNotFound, InvalidOptions, CommandNotSupported. */
const REFUSED_OPTIONS: ReadonlySet<unknown> = new Set([2, 13, 59, 72, 115]);
const OLDEST_MONGODB = 8;
const NEEDED = `The MongoDB of MONGODB_URI is too old, ${OLDEST_MONGODB}.0 or newer is needed`;

// A primary that freezes keeps its connections: only its missing heartbeats, after the sum of these two, tell.
const OPTIONS: MongoClientOptions = {
  appName: 'vigil',
  writeConcern: { w: 'majority', journal: true },
  readPreference: 'primary',
  retryWrites: true,
  retryReads: true,
  connectTimeoutMS: LIMITS.databaseConnectMs,
  heartbeatFrequencyMS: LIMITS.databaseHeartbeatMs,
  serverSelectionTimeoutMS: LIMITS.databaseSelectionMs,
  waitQueueTimeoutMS: LIMITS.databaseSelectionMs,
  socketTimeoutMS: LIMITS.databaseOperationMs,
  maxPoolSize: LIMITS.databaseConnections,
  ignoreUndefined: true,
};

/** A client whose every wait is bounded; majority, journaled writes: an acknowledged write survives any kill. */
export function createClient(uri: string): MongoClient {
  return countPool(new MongoClient(uri, OPTIONS));
}

/** A client for the watcher alone: it hears sooner that a server is gone, and waits longer for one that has much to read. */
export function createWatcherClient(uri: string): MongoClient {
  const options = {
    ...OPTIONS,
    heartbeatFrequencyMS: LIMITS.watcherHeartbeatMs,
    socketTimeoutMS: LIMITS.watcherAnswerMaxMs,
    maxPoolSize: LIMITS.watcherConnections,
  };
  return new MongoClient(uri, options);
}

/**
 * The database for lists alone: however long they take, all else finds a connection. Connected at once: a client that fails at
 * its first question never comes back. Throws 503 while the database is away.
 */
export async function connectListDatabase(uri: string): Promise<Database> {
  const atOnce = LIMITS.quickListsAtOnce + LIMITS.pagesAtOnce + LIMITS.scansAtOnce;
  const maxPoolSize = atOnce + LIMITS.listConnectionsMore;
  const client = countPool(new MongoClient(uri, { ...OPTIONS, maxPoolSize }));
  try {
    await translated(() => client.connect(), null);
    return databaseOf(client);
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** The database that the client's address names. */
export function databaseOf(client: MongoClient): Database {
  return { client, db: client.db(), admin: client.db('admin'), inTurn: createInTurn() };
}

/** Connects, and makes every collection and index that is not there yet. */
export async function connectDatabase(uri: string): Promise<Database> {
  const client = createClient(uri);
  const database = databaseOf(client);
  try {
    await translated(async () => {
      await client.connect();
      await checkServer(database.db);
      // An index over what is there already takes its time.
      await prepareCollections(database.db);
    }, null);
    return database;
  } catch (error) {
    await client.close();
    throw lastingFault(error) ?? error;
  }
}

const AUTHENTICATION_FAILED = 18;
const UNAUTHORIZED = 13;

/** What the driver says of a server that is too old even for it; null of any other trouble. */
function findCompatibilityError(error: unknown): MongoCompatibilityError | null {
  if (error instanceof MongoCompatibilityError) return error;
  if (!(error instanceof MongoServerSelectionError)) return null;
  const said = [...(error.reason?.servers.values() ?? [])].map((server) => server.error);
  return said.find((one): one is MongoCompatibilityError => one instanceof MongoCompatibilityError) ?? null;
}

/** Says of what no waiting mends what has to be done about it; null of everything else. */
function lastingFault(error: unknown): Error | null {
  const cause = error instanceof ApiError ? error.cause : error;
  const tooOld = findCompatibilityError(cause);
  if (tooOld !== null) return new Error(`${NEEDED}: ${tooOld.message}`);
  if (cause instanceof MongoServerSelectionError && cause.reason?.servers.size === 0) {
    return new Error(
      `None of the servers of MONGODB_URI belongs to the replica set "${cause.reason.setName}": ` +
        'it is called otherwise there, or they are standalone servers',
    );
  }
  if (!(cause instanceof MongoServerError)) return null;
  if (cause.code === AUTHENTICATION_FAILED) {
    return new Error('The MongoDB of MONGODB_URI refuses the user or the password (or authSource is another database)');
  }
  if (cause.code !== UNAUTHORIZED) return null;
  return new Error(`The user of MONGODB_URI may not do what is needed (role readWrite): ${cause.message}`);
}

/** Live events need a replica set (or a cluster of them), and what is asked of the database a version that has it. */
async function checkServer(db: Db): Promise<void> {
  const hello = await db.command({ hello: 1 });
  if (hello.setName === undefined && hello.msg !== 'isdbgrid') {
    throw new Error(
      'The MongoDB of MONGODB_URI is a standalone server; a replica set is needed, and one of a single member will do',
    );
  }
  const { version } = await db.command({ buildInfo: 1 });
  if (Number.parseInt(version, 10) < OLDEST_MONGODB) throw new Error(`${NEEDED}: it is ${version}`);
}

/** The collection of a store; stores of administrators stand apart from everything of the service's. */
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

/** Makes what is missing, all at once: on a new database each collection waits for the disk. */
async function prepareCollections(db: Db): Promise<void> {
  const present = new Set((await db.listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name));
  // Packets and sessions are never changed: the image before the change would be paid for and never read.
  await Promise.all([
    ...[...STORES.values()].map((store) => prepareCollection(db, store, present)),
    prepare(db, 'packets', [{ key: { _oid: 1, time: 1, _ts: 1 } }], { present, options: COMPRESSED }),
    prepare(db, 'sessions', SESSION_INDEXES, { present, options: {} }),
    prepare(db, 'installation', [], { present, options: {} }),
    prepare(db, 'presence', [{ key: { instance: 1 } }], { present, options: WITH_IMAGES }),
  ]);
}

/** Makes the collection of a store, with its indexes, unless it is there. */
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
/** The history is most of what is stored: so it takes half the room, indexes included. */
const COMPRESSED: CreateCollectionOptions = { storageEngine: ZSTD, indexOptionDefaults: { storageEngine: ZSTD } };

async function createCollection(db: Db, name: string, options: CreateCollectionOptions): Promise<void> {
  try {
    await db.createCollection(name, options);
  } catch (error) {
    if (!(error instanceof MongoServerError)) throw error;
    // Another storage engine, or a host that chooses compression itself.
    if (options.storageEngine !== undefined && REFUSED_OPTIONS.has(error.code)) await createCollection(db, name, {});
    // Another instance was quicker.
    else if (error.code !== NAMESPACE_EXISTS) throw error;
  }
}

/** An object's journal; what waits for it; what may still expire; what a connection has sent. */
const COMMAND_INDEXES: readonly IndexDescription[] = [
  { key: { object: 1, _id: 1 } },
  { key: { object: 1, status: 1, _id: 1 } },
  { key: { expires: 1 }, partialFilterExpression: { status: { $in: [...OPEN_STATUSES] } } },
  { key: { _holder: 1 }, partialFilterExpression: { _holder: { $exists: true } } },
];

function indexesOf(store: Store): IndexDescription[] {
  const indexes: IndexDescription[] = [
    { key: { branch: 1, _id: 1 } },
    { key: { owner: 1, _id: 1 } },
    { key: { access: 1, _id: 1 } },
  ];
  if (store.builtIn) indexes.push({ key: { _builtin: 1, _id: 1 } });
  for (const field of store.unique) {
    indexes.push({ key: { [field]: 1 }, unique: true, partialFilterExpression: { [field]: { $exists: true } } });
  }
  if (store.name === 'tokens') indexes.push({ key: { _expires: 1 }, expireAfterSeconds: 0 }, { key: { user: 1 } });
  if (store.name === 'tokens') {
    indexes.push({ key: { _parents: 1 }, partialFilterExpression: { _parents: { $exists: true } } });
  }
  if (store.name === 'audit') indexes.push({ key: { _expires: 1 }, expireAfterSeconds: 0 });
  if (store.name === 'stores') indexes.push({ key: { name: 1, group: 1 }, unique: true });
  if (store.name === 'users') indexes.push({ key: { role: 1 } });
  if (store.name === 'commands') indexes.push(...COMMAND_INDEXES);
  return indexes;
}
