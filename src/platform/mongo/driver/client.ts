/** Clients of MongoDB, with a bound on every wait. */

import { type Db, MongoClient, type MongoClientOptions } from 'mongodb';
import { LIMITS } from '../../../core/limits.js';
import { clock } from '../../clock.js';
import { type Batch, createBatcher } from './batcher.js';
import { mapDriverErrors } from './errors.js';
import type { ListRequest } from './list-caller.js';
import { countPool } from './pool-stats.js';

/** The clock of the service, and how far the clocks of others may be ahead of it. */
export interface ServiceClock {
  readonly now: () => number;
  readonly aheadMs: number;
}

const SYSTEM_CLOCK: ServiceClock = { now: clock.now, aheadMs: LIMITS.packetAheadMs };

/** Stored packets of an object that cannot be read any more. */
export interface StoredDamage {
  readonly documentId: string;
  /** Whose packets it has. */
  readonly objectId: string;
  readonly reason: string;
}

export interface Database {
  readonly client: MongoClient;
  readonly db: Db;
  /** For commands over several collections. */
  readonly admin: Db;
  readonly batch: Batch;
  readonly clock: ServiceClock;
  /** The caller of a list and its queues; absent for reads of the service itself. */
  readonly listing?: ListRequest;
  /** Aborted when no caller waits for the result any more. */
  readonly stop?: AbortSignal;
  /** Called for each read that meets a damaged document; absent where nobody wants to know. */
  readonly onDamaged?: ((damage: StoredDamage) => void) | undefined;
}

/**
 * Reads only what a majority has. For whatever is kept until a change says otherwise: a write that an election undoes is never
 * reported as a change.
 */
export const COMMITTED_READ = { readConcern: { level: 'majority' } } as const;

// A frozen primary keeps its connections: only missing heartbeats, after the sum of these two, reveal it.
const toOptions = (): MongoClientOptions => ({
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
});

/** Bounds every wait. Writes are majority-acknowledged and journaled: an acknowledged write survives any kill. */
export function createClient(uri: string): MongoClient {
  return countPool(new MongoClient(uri, toOptions()));
}

/** A client only for the watcher: it detects a lost server sooner, and waits longer for a server that reads a long oplog. */
export function createWatcherClient(uri: string): MongoClient {
  const options = {
    ...toOptions(),
    heartbeatFrequencyMS: LIMITS.watcherHeartbeatMs,
    socketTimeoutMS: LIMITS.watcherAnswerMaxMs,
    maxPoolSize: LIMITS.watcherConnections,
  };
  return new MongoClient(uri, options);
}

/**
 * The database for lists: its own pool keeps slow lists from taking all connections. It connects at once, because a client whose
 * first command fails never recovers. Throws 503 while the database is unavailable.
 */
export async function connectListDatabase(uri: string, clock: ServiceClock): Promise<Database> {
  const listsAtOnce = LIMITS.quickListsAtOnce + LIMITS.pagesAtOnce + LIMITS.scansAtOnce + LIMITS.pastsAtOnce;
  const atOnce = listsAtOnce + LIMITS.streamBatchesAtOnce;
  const maxPoolSize = atOnce + LIMITS.listConnectionsMore;
  const client = countPool(new MongoClient(uri, { ...toOptions(), maxPoolSize }));
  try {
    await mapDriverErrors(() => client.connect(), null);
    return databaseOf(client, clock);
  } catch (error) {
    await client.close();
    throw error;
  }
}

/** The database that the client's URI names. */
export function databaseOf(client: MongoClient, clock: ServiceClock = SYSTEM_CLOCK): Database {
  return { client, clock, db: client.db(), admin: client.db('admin'), batch: createBatcher() };
}
