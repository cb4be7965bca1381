/** Migrates stored data to the current schema version: numbered steps, each applied once, by one instance at a time. */
import { unavailable } from '../../errors.js';
import { LIMITS } from '../../model/limits.js';
import type { Database } from '../driver/client.js';
import { mapDriverErrors } from '../driver/errors.js';
import { acquireLease, type Lease } from '../driver/lease.js';
import { commandExpiry } from './migrations/0001-command-expiry.js';
import { packetKeys } from './migrations/0002-packet-keys.js';
import { commandOwners } from './migrations/0003-command-owners.js';
import { storeNames } from './migrations/0004-store-names.js';
import type { Migration } from './migrations/migration.js';

/** In order of their numbers; the first one leads to version 1. Released migrations never change. */
export const MIGRATIONS: readonly Migration[] = [commandExpiry, packetKeys, commandOwners, storeNames];

type SchemaDocument = { _id: string; version: number; applied: { name: string; time: number }[] };

const SCHEMA = 'schema';
/** Marks a database into which a backup is being restored. */
export const RESTORING = 'restoring';

/**
 * Migrates the database. Throws 503 while another instance migrates it. Throws an error for the operator when a newer version has
 * used the database, or when a restore is unfinished.
 */
export async function migrate(
  database: Database,
  { migrations = MIGRATIONS, leaseMs = LIMITS.leaseMs } = {},
): Promise<void> {
  const known = migrations.length;
  const present = await readVersion(database, known);
  if (present === known) return;
  const lease = await acquireLease(database, SCHEMA, leaseMs);
  if (lease === null) {
    throw unavailable(undefined, new Error('Another instance is migrating the database'));
  }
  try {
    for (let version = await readVersion(database, known); version < known; version++) {
      await apply(database, migrations[version] as Migration, version, lease);
    }
  } finally {
    await lease.release();
  }
}

/** When a migration was applied, in ms; null when this installation never needed it. */
export async function findApplied(database: Database, { name }: Migration): Promise<number | null> {
  const installation = database.db.collection<SchemaDocument>('installation');
  const schema = await mapDriverErrors(() => installation.findOne({ _id: SCHEMA }));
  return schema?.applied.find((step) => step.name === name)?.time ?? null;
}

/** The schema version: the number of applied migrations. A new database has the newest version. */
async function readVersion(database: Database, known: number): Promise<number> {
  const installation = database.db.collection<SchemaDocument>('installation');
  const found = await mapDriverErrors(() => installation.find({ _id: { $not: /^lease: / } }).toArray());
  if (found.some(({ _id }) => _id === RESTORING)) {
    throw new Error('A restore into this database is unfinished: run it again with --replace');
  }
  const present = found.find(({ _id }) => _id === SCHEMA)?.version;
  if (present === undefined && found.length === 0) {
    const newest = { $setOnInsert: { version: known, applied: [] } };
    await mapDriverErrors(() => installation.updateOne({ _id: SCHEMA }, newest, { upsert: true }));
    return known;
  }
  if ((present ?? 0) <= known) return present ?? 0;
  throw new Error(
    `This database was used by a newer Vigil (its data has version ${present}, this Vigil knows ${known}): start that ` +
      'version or a newer one, or restore the backup made before the upgrade',
  );
}

async function apply(database: Database, migration: Migration, version: number, { lost }: Lease): Promise<void> {
  await mapDriverErrors(() => migration.run(database, lost), null);
  if (lost.aborted)
    throw unavailable(undefined, new Error('Another instance has taken over the migration of the database'));
  const done = { name: migration.name, time: Date.now() };
  const installation = database.db.collection<SchemaDocument>('installation');
  await mapDriverErrors(async () => {
    await installation.updateOne({ _id: SCHEMA }, { $setOnInsert: { version: 0, applied: [] } }, { upsert: true });
    await installation.updateOne(
      { _id: SCHEMA, version },
      { $set: { version: version + 1 }, $push: { applied: done } },
    );
  });
}
