/** Restores a backup completely, or leaves the database marked as incomplete. */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { BSON, type Document } from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { prepareCustomStore } from '../entities/custom-stores.js';
import { BUCKETS } from '../packets/store/buckets.js';
import { PACKETS } from '../packets/store/query.js';
import { settleBuckets } from '../packets/store/restored-buckets.js';
import type { Database } from '../platform/mongo/driver/client.js';
import { areDuplicates, mapDriverErrors } from '../platform/mongo/driver/errors.js';
import { connectDatabase } from '../platform/mongo/schema/connect.js';
import { FIRST_VERSION, NEWEST_VERSION, RESTORING } from '../platform/mongo/schema/migrations.js';
import { type BackupFile, type Manifest, readManifest } from './manifest.js';

/** Keeps the exact BSON types of all values. */
const AS_STORED = { promoteValues: false, promoteBuffers: false, bsonRegExp: true } as const;
const CUSTOM = 'custom.';

type Mark = { _id: string; time?: number };

/**
 * Restores a backup into a database, which must be empty unless `replace` is set. No instance may use the database meanwhile.
 * Throws an error that says what is wrong, if possible before anything is changed.
 */
export async function restoreBackup(uri: string, folder: string, replace: boolean): Promise<Manifest> {
  const manifest = await readManifest(folder);
  const { schema } = manifest;
  if (schema < FIRST_VERSION)
    throw new Error('The backup is from before the first release of Vigil, and cannot be read');
  if (schema > NEWEST_VERSION) {
    throw new Error(
      `The backup was written by a newer Vigil (its data has version ${schema}, this Vigil knows ${NEWEST_VERSION})`,
    );
  }
  await withDatabase(uri, (database) => clearDatabase(database, replace));
  await withDatabase(uri, (database) => restoreAll(database, folder, manifest));
  return manifest;
}

/** Runs work with a database in which all collections and indexes exist. */
async function withDatabase(uri: string, work: (database: Database) => Promise<void>): Promise<void> {
  const database = await connectDatabase(uri);
  try {
    await mapDriverErrors(() => work(database), null);
  } finally {
    await database.client.close();
  }
}

/** Removes all data and marks the database as incomplete, so that no Vigil starts on it until the restore is finished. */
async function clearDatabase(database: Database, replace: boolean): Promise<void> {
  const filled = await filledCollections(database);
  if (filled.length > 0 && !replace) {
    throw new Error(`The database is not empty (${filled.join(', ')}): --replace removes all of that`);
  }
  const marks = database.db.collection<Mark>('installation');
  await marks.updateOne({ _id: RESTORING }, { $set: { time: Date.now() } }, { upsert: true });
  await marks.deleteMany({ _id: { $ne: RESTORING } });
  for (const name of filled) if (name !== 'installation') await database.db.collection(name).drop();
}

async function filledCollections({ db }: Database): Promise<string[]> {
  const found = await db.listCollections({ type: 'collection' }, { nameOnly: true }).toArray();
  const names = found.map(({ name }) => name).filter((name) => !name.startsWith('system.'));
  const filled = await Promise.all(names.map(async (name) => (await db.collection(name).findOne({})) !== null));
  return names.filter((_, index) => filled[index]).sort();
}

async function restoreAll(database: Database, folder: string, manifest: Manifest): Promise<void> {
  const custom = manifest.files.filter(({ collection }) => collection.startsWith(CUSTOM));
  for (const { collection } of custom) await prepareCustomStore(database, collection.slice(CUSTOM.length));
  for (const file of inOrder(manifest.files)) {
    const documents = await insertAll(database, folder, file);
    if (documents !== file.documents) {
      throw new Error(`${join(folder, file.file)} has ${documents} documents, not ${file.documents}`);
    }
  }
  if (!manifest.exact) await settleBuckets(database);
  await database.db.collection<Mark>('installation').deleteOne({ _id: RESTORING });
}

/** Objects before their packets, and the installation's marks last. */
function inOrder(files: readonly BackupFile[]): BackupFile[] {
  const rank = ({ collection }: BackupFile): number => [BUCKETS, PACKETS, 'installation'].indexOf(collection);
  return [...files].sort((a, b) => rank(a) - rank(b));
}

/** Buckets that were read twice are in the backup twice. */
const unlessRepeated = (collection: string) => (error: unknown) => {
  if (collection !== BUCKETS || !areDuplicates(error)) throw error;
};

async function insertAll({ db }: Database, folder: string, { collection, file }: BackupFile): Promise<number> {
  const compressed = createReadStream(join(folder, file));
  const bytes = createGunzip();
  compressed.on('error', (error) => bytes.destroy(error)).pipe(bytes);
  let batch: Document[] = [];
  let batchBytes = 0;
  let inserted = 0;
  const insert = async (): Promise<void> => {
    if (batch.length > 0)
      await db.collection(collection).insertMany(batch, { ordered: false }).catch(unlessRepeated(collection));
    inserted += batch.length;
    [batch, batchBytes] = [[], 0];
  };
  for await (const document of documentsIn(bytes)) {
    batch.push(BSON.deserialize(document, AS_STORED));
    batchBytes += document.length;
    if (batch.length >= LIMITS.restoreBatch || batchBytes >= LIMITS.backupPieceBytes) await insert();
  }
  await insert();
  return inserted;
}

/** Splits a stream of BSON into documents: each begins with its length. */
async function* documentsIn(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const bytes of stream) {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    let start = 0;
    while (rest.length - start >= 4 && rest.length - start >= rest.readInt32LE(start)) {
      const end = start + rest.readInt32LE(start);
      yield rest.subarray(start, end);
      start = end;
    }
    rest = rest.subarray(start);
  }
  if (rest.length > 0) throw new Error('The backup ends in the middle of a document');
}
