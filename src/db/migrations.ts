/** What is stored is brought to the form that this version knows: numbered steps, each once, by one instance at a time. */
import { unavailable } from '../errors.js';
import { LIMITS } from '../model/limits.js';
import type { Database } from './connect.js';
import { translated } from './documents.js';
import { type Lease, takeLease } from './lease.js';
import { commandExpiry } from './migrations/0001-command-expiry.js';
import { packetKeys } from './migrations/0002-packet-keys.js';
import { commandOwners } from './migrations/0003-command-owners.js';
import { storeNames } from './migrations/0004-store-names.js';
import type { Migration } from './migrations/migration.js';

/** In the order of their numbers; the first leads to version 1. What has been released is never changed. */
export const MIGRATIONS: readonly Migration[] = [commandExpiry, packetKeys, commandOwners, storeNames];

type SchemaDocument = { _id: string; version: number; applied: { name: string; time: number }[] };

const SCHEMA = 'schema';
/** The mark of a database into which a backup is being restored. */
export const RESTORING = 'restoring';

/**
 * Brings the database up to date. Throws 503 while another instance does, and an error that says what to do where a
 * newer version has been here, or a restore was not finished.
 */
export async function migrate(
  database: Database,
  { migrations = MIGRATIONS, leaseMs = LIMITS.leaseMs } = {},
): Promise<void> {
  const known = migrations.length;
  const present = await readVersion(database, known);
  if (present === known) return;
  const lease = await takeLease(database, SCHEMA, leaseMs);
  if (lease === null) {
    throw unavailable(undefined, new Error('Another instance is bringing the database up to date'));
  }
  try {
    for (let version = await readVersion(database, known); version < known; version++) {
      await apply(database, migrations[version] as Migration, version, lease);
    }
  } finally {
    await lease.release();
  }
}

/** When the step was taken here, ms; null where there was nothing to bring up to date. */
export async function findApplied(database: Database, { name }: Migration): Promise<number | null> {
  const marks = database.db.collection<SchemaDocument>('installation');
  const schema = await translated(() => marks.findOne({ _id: SCHEMA }));
  return schema?.applied.find((step) => step.name === name)?.time ?? null;
}

/** The version of what is stored: how many migrations were applied. A database that is new is of the newest. */
async function readVersion(database: Database, known: number): Promise<number> {
  const marks = database.db.collection<SchemaDocument>('installation');
  const found = await translated(() => marks.find({ _id: { $not: /^lease: / } }).toArray());
  if (found.some(({ _id }) => _id === RESTORING)) {
    throw new Error('A restore into this database was not finished: run it again, with --replace');
  }
  const present = found.find(({ _id }) => _id === SCHEMA)?.version;
  if (present === undefined && found.length === 0) {
    const newest = { $setOnInsert: { version: known, applied: [] } };
    await translated(() => marks.updateOne({ _id: SCHEMA }, newest, { upsert: true }));
    return known;
  }
  if ((present ?? 0) <= known) return present ?? 0;
  throw new Error(
    `This database was used by a newer Vigil (its data has version ${present}, this Vigil knows ${known}): start that ` +
      'version or a newer one, or restore the backup made before the upgrade',
  );
}

async function apply(database: Database, migration: Migration, version: number, { lost }: Lease): Promise<void> {
  await translated(() => migration.run(database, lost), null);
  if (lost.aborted)
    throw unavailable(undefined, new Error('Another instance goes on with bringing the database up to date'));
  const done = { name: migration.name, time: Date.now() };
  const marks = database.db.collection<SchemaDocument>('installation');
  await translated(async () => {
    await marks.updateOne({ _id: SCHEMA }, { $setOnInsert: { version: 0, applied: [] } }, { upsert: true });
    await marks.updateOne({ _id: SCHEMA, version }, { $set: { version: version + 1 }, $push: { applied: done } });
  });
}
