/** Connects to MongoDB, checks that the server is usable, and creates missing collections. */
import { type Db, MongoCompatibilityError, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { ApiError } from '../../../core/errors.js';
import { createClient, type Database, databaseOf, type ServiceClock } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import { prepareCollections } from './collections.js';

const OLDEST_MONGODB = 8;
const NEEDED = `The MongoDB of MONGODB_URI is too old, ${OLDEST_MONGODB}.0 or newer is needed`;

/** Connects, and creates missing collections and indexes. */
export async function connectDatabase(uri: string, clock?: ServiceClock): Promise<Database> {
  const client = createClient(uri);
  const database = databaseOf(client, clock);
  try {
    await mapDriverErrors(async () => {
      await client.connect();
      await checkServer(database.db);
      // No time limit: creating an index over existing documents takes long.
      await prepareCollections(database.db);
    }, null);
    return database;
  } catch (error) {
    await client.close();
    throw permanentError(error) ?? error;
  }
}

const AUTHENTICATION_FAILED = 18;
const UNAUTHORIZED = 13;

/** Finds the driver's error about a server that is too old for the driver itself; null for any other error. */
function findCompatibilityError(error: unknown): MongoCompatibilityError | null {
  if (error instanceof MongoCompatibilityError) return error;
  if (!(error instanceof MongoServerSelectionError)) return null;
  const errors = [...(error.reason?.servers.values() ?? [])].map((server) => server.error);
  return errors.find((one): one is MongoCompatibilityError => one instanceof MongoCompatibilityError) ?? null;
}

/** Converts errors that no retry solves to errors that explain to the operator what to do; null for any other error. */
function permanentError(error: unknown): Error | null {
  const cause = error instanceof ApiError ? error.cause : error;
  const tooOld = findCompatibilityError(cause);
  if (tooOld !== null) return new Error(`${NEEDED}: ${tooOld.message}`);
  if (cause instanceof MongoServerSelectionError && cause.reason?.servers.size === 0) {
    return new Error(
      `None of the servers of MONGODB_URI belongs to the replica set "${cause.reason.setName}": ` +
        'the set has another name, or they are standalone servers',
    );
  }
  if (!(cause instanceof MongoServerError)) return null;
  if (cause.code === AUTHENTICATION_FAILED) {
    return new Error('The MongoDB of MONGODB_URI refuses the user or the password (or authSource is another database)');
  }
  if (cause.code !== UNAUTHORIZED) return null;
  return new Error(`The user of MONGODB_URI lacks permissions (role readWrite is needed): ${cause.message}`);
}

/** Live events need a replica set or a sharded cluster; the queries need a minimum version. */
async function checkServer(db: Db): Promise<void> {
  const hello = await db.command({ hello: 1 });
  if (hello.setName === undefined && hello.msg !== 'isdbgrid') {
    throw new Error(
      'The MongoDB of MONGODB_URI is a standalone server; a replica set is needed, a single member suffices',
    );
  }
  const { version } = await db.command({ buildInfo: 1 });
  if (Number.parseInt(version, 10) < OLDEST_MONGODB) throw new Error(`${NEEDED}: it is ${version}`);
}
