/** Migrates stored data to the current schema version: numbered steps, each applied once, by one instance at a time. */
import { unavailable } from '../../../core/errors.js';
import { LIMITS } from '../../../core/limits.js';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import { acquireLease, type Lease } from '../driver/lease.js';
import type { Migration } from './migrations/migration.js';

/** The schema version of the first release. */
export const FIRST_VERSION = 1;
/** In order of their numbers; the first one leads to the version after `FIRST_VERSION`. Released migrations never change. */
export const MIGRATIONS: readonly Migration[] = [];
export const NEWEST_VERSION = FIRST_VERSION + MIGRATIONS.length;

type SchemaDocument = { _id: string; version: number; applied: { name: string; time: number }[]; created?: Date };

const SCHEMA = 'schema';
/** Marks a database into which a backup is being restored. */
export const RESTORING = 'restoring';

/**
 * Migrates the database. Throws 503 while another instance migrates it. Throws an error for the operator when a newer version has
 * used the database, when its data has no version, or when a restore is unfinished.
 */
export async function migrate(
  database: Database,
  { migrations = MIGRATIONS, leaseMs = LIMITS.leaseMs } = {},
): Promise<void> {
  const known = FIRST_VERSION + migrations.length;
  const present = await readVersion(database, known);
  if (present === known) return;
  const lease = await acquireLease(database, SCHEMA, leaseMs);
  if (lease === null) {
    throw unavailable(undefined, new Error('Another instance is migrating the database'));
  }
  try {
    for (let version = await readVersion(database, known); version < known; version++) {
      await apply(database, migrations[version - FIRST_VERSION] as Migration, version, lease);
    }
  } finally {
    await lease.release();
  }
}

/** Reads the schema version. A new database has the newest one; each applied migration adds one. */
async function readVersion(database: Database, known: number): Promise<number> {
  const installation = database.db.collection<SchemaDocument>('installation');
  const found = await mapDriverErrors(() => installation.find({ _id: { $not: /^lease: / } }).toArray());
  if (found.some(({ _id }) => _id === RESTORING)) {
    throw new Error('A restore into this database is unfinished: run it again with --replace');
  }
  if (found.length === 0) {
    // What another instance has stored meanwhile is kept.
    const newest = { version: known, applied: [], created: '$$NOW' };
    const update = [{ $replaceWith: { $mergeObjects: [newest, '$$ROOT'] } }];
    await mapDriverErrors(() => installation.updateOne({ _id: SCHEMA }, update, { upsert: true }));
    return known;
  }
  const { version = 0 } = found.find(({ _id }) => _id === SCHEMA) ?? {};
  if (version < FIRST_VERSION) {
    throw new Error('This database is from before the first release of Vigil, and cannot be read: use an empty one');
  }
  if (version <= known) return version;
  throw new Error(
    `This database was used by a newer Vigil (its data has version ${version}, this Vigil knows ${known}): start that ` +
      'version or a newer one, or restore the backup made before the upgrade',
  );
}

/** Reads when the database was created, in ms by its own clock: no change of it is older. 0 where nobody has stored that. */
export async function readCreatedMs({ db }: Database): Promise<number> {
  const found = await db.collection<SchemaDocument>('installation').findOne({ _id: SCHEMA });
  return found?.created?.getTime() ?? 0;
}

async function apply(database: Database, migration: Migration, version: number, { lost }: Lease): Promise<void> {
  await mapDriverErrors(() => migration.run(database, lost), null);
  if (lost.aborted)
    throw unavailable(undefined, new Error('Another instance has taken over the migration of the database'));
  const done = { name: migration.name, time: Date.now() };
  const installation = database.db.collection<SchemaDocument>('installation');
  await mapDriverErrors(async () => {
    const next = { $set: { version: version + 1 }, $push: { applied: done } };
    await installation.updateOne({ _id: SCHEMA, version }, next);
  });
}
