/** A backup becomes the data of an installation again: all of it, or a database that says that it is not whole. */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import { BSON, type Document } from 'mongodb';
import { LIMITS } from '../model/limits.js';
import { connectDatabase, type Database } from './connect.js';
import { prepareCustomStore } from './custom-stores.js';
import { translated } from './documents.js';
import { type BackupFile, type Manifest, readManifest } from './manifest.js';
import { MIGRATIONS, RESTORING } from './migrations.js';
import { PACKETS } from './packets.js';

/** Values keep the very types that they were stored with. */
const AS_STORED = { promoteValues: false, promoteBuffers: false, bsonRegExp: true } as const;
const CUSTOM = 'custom.';

type Mark = { _id: string; time?: number };

/**
 * Restores a backup into the database at this address, which must hold nothing unless all of it is to be replaced. No
 * instance may be running on it. Throws an error that says what is wrong, before anything is changed where it can.
 */
export async function restoreBackup(uri: string, folder: string, replace: boolean): Promise<Manifest> {
  const manifest = await readManifest(folder);
  if (manifest.schema > MIGRATIONS.length) {
    throw new Error(
      `The backup is of a newer Vigil (its data has version ${manifest.schema}, this Vigil knows ${MIGRATIONS.length})`,
    );
  }
  await using(uri, (database) => makeRoom(database, replace));
  await using(uri, (database) => restoreAll(database, folder, manifest));
  return manifest;
}

/** Does something with a database in which every collection and index is there. */
async function using(uri: string, work: (database: Database) => Promise<void>): Promise<void> {
  const database = await connectDatabase(uri);
  try {
    await translated(() => work(database), null);
  } finally {
    await database.client.close();
  }
}

/** Removes what is there, and notes that what will be there is not whole: no Vigil starts on it until it is. */
async function makeRoom(database: Database, replace: boolean): Promise<void> {
  const filled = await filledCollections(database);
  if (filled.length > 0 && !replace) {
    throw new Error(`The database is not empty (${filled.join(', ')}): with --replace all of that is removed`);
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
  return names.filter((_, at) => filled[at]).sort();
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
  await database.db.collection<Mark>('installation').deleteOne({ _id: RESTORING });
}

/** Objects before their packets, and last what says that everything is there. */
function inOrder(files: readonly BackupFile[]): BackupFile[] {
  const rank = ({ collection }: BackupFile): number => [PACKETS, 'installation'].indexOf(collection);
  return [...files].sort((a, b) => rank(a) - rank(b));
}

async function insertAll({ db }: Database, folder: string, { collection, file }: BackupFile): Promise<number> {
  const compressed = createReadStream(join(folder, file));
  const bytes = createGunzip();
  compressed.on('error', (error) => bytes.destroy(error)).pipe(bytes);
  let batch: Document[] = [];
  let [batchBytes, inserted] = [0, 0];
  const insert = async (): Promise<void> => {
    if (batch.length > 0) await db.collection(collection).insertMany(batch);
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

/** The documents of a stream of BSON: each begins with its length. */
async function* documentsIn(stream: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const bytes of stream) {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    let at = 0;
    while (rest.length - at >= 4 && rest.length - at >= rest.readInt32LE(at)) {
      const end = at + rest.readInt32LE(at);
      yield rest.subarray(at, end);
      at = end;
    }
    rest = rest.subarray(at);
  }
  if (rest.length > 0) throw new Error('The backup ends in the middle of a document');
}
