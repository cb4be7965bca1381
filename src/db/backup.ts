/** Everything that an installation has stored, as it was at one moment, written into a folder; the service goes on meanwhile. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { BSON, type ClientSession, type Db, type Document, type Filter, type MongoClient } from 'mongodb';
import { LIMITS } from '../model/limits.js';
import { type BackupFile, MANIFEST, type Manifest } from './manifest.js';
import { RESTORING } from './migrations.js';
import { keysAfter } from './packet-key.js';
import { PACKETS } from './packets.js';

/** The database has forgotten what was at the moment that is asked for: after five minutes, unless it was told otherwise. */
const SNAPSHOT_TOO_OLD = 239;
/** Nothing has been committed yet that could be read so. */
const SNAPSHOT_UNAVAILABLE = 246;
const SNAPSHOT_PAUSE_MS = 50;
/** Who holds a lease is of no use to anybody later. */
const LEFT_OUT: Filter<Document> = { _id: { $not: /^lease: / as never } };

/** Writes the backup. The folder must not be there, or be empty; it is there, whole, only in the end. */
export async function writeBackup(client: MongoClient, folder: string, nowMs: number): Promise<Manifest> {
  const present = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  if (present.length > 0) throw new Error(`${folder} is not empty: a backup has a folder of its own`);
  const draft = `${folder}.partial`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  await mkdir(draft, { mode: 0o700 });
  const session = client.startSession({ snapshot: true });
  try {
    const manifest = await writeAll(client.db(), session, draft, nowMs);
    await writeFile(join(draft, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600, flush: true });
    await rm(folder, { recursive: true, force: true });
    await rename(draft, folder);
    return manifest;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  } finally {
    await session.endSession();
  }
}

async function writeAll(db: Db, session: ClientSession, folder: string, nowMs: number): Promise<Manifest> {
  const marks = await readMarks(db, session);
  if (marks.length === 0) throw new Error('The database is empty: nobody has started a Vigil on it');
  if (marks.some(({ _id }) => _id === RESTORING)) throw new Error('A restore into this database was not finished');
  const found = await db.listCollections({ type: 'collection' }, { nameOnly: true }).toArray();
  const names = found.map(({ name }) => name).filter((name) => !name.startsWith('system.') && name !== PACKETS);
  const files: BackupFile[] = [];
  for (const name of names.sort()) {
    const filter = name === 'installation' ? LEFT_OUT : {};
    const read = () => db.collection(name).find(filter, { session, raw: true, sort: { _id: 1 } });
    files.push(await writeCollection(folder, name, read() as AsyncIterable<unknown> as AsyncIterable<Uint8Array>));
  }
  // They are many and never change, so of all that is here they alone can be read of a later moment.
  const { documents, isExact } = packetsOf(db, session);
  if (found.some(({ name }) => name === PACKETS)) files.push(await writeCollection(folder, PACKETS, documents));
  return {
    ...{ format: 1, schema: marks.find(({ _id }) => _id === 'schema')?.version ?? 0, time: nowMs },
    ...{ clusterTime: String((session as unknown as { snapshotTime: unknown }).snapshotTime), exact: isExact(), files },
  };
}

type Mark = { _id: string; version?: number };

/** The first that is read, and by that the moment of all the rest. A database that was just started takes a little. */
async function readMarks(db: Db, session: ClientSession): Promise<Mark[]> {
  for (const deadlineMs = performance.now() + LIMITS.databaseOperationMs; ; ) {
    try {
      return await db.collection<Mark>('installation').find({}, { session }).toArray();
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code !== SNAPSHOT_UNAVAILABLE || performance.now() > deadlineMs) throw error;
      await wait(SNAPSHOT_PAUSE_MS);
    }
  }
}

/** The packets of the snapshot; from where the database cannot give them any more, those that are there. */
function packetsOf(db: Db, session: ClientSession): { documents: AsyncIterable<Uint8Array>; isExact: () => boolean } {
  let isExact = true;
  const read = (filter: Filter<Document>, options: object) =>
    db.collection(PACKETS).find(filter, { ...options, raw: true, sort: { _id: 1 } }) as AsyncIterable<unknown>;
  async function* documents(): AsyncGenerator<Uint8Array> {
    let last: Uint8Array | null = null;
    try {
      for await (const document of read({}, { session }) as AsyncIterable<Uint8Array>) {
        last = document;
        yield document;
      }
    } catch (error) {
      if ((error as { code?: unknown }).code !== SNAPSHOT_TOO_OLD) throw error;
      isExact = false;
      const rest = last === null ? {} : keysAfter(BSON.deserialize(last)._id);
      yield* read(rest, { readConcern: { level: 'majority' } }) as AsyncIterable<Uint8Array>;
    }
  }
  return { documents: documents(), isExact: () => isExact };
}

/** Compressed BSON, one document after the other, as MongoDB's own tools write and read it. */
async function writeCollection(
  folder: string,
  name: string,
  documents: AsyncIterable<Uint8Array>,
): Promise<BackupFile> {
  const file = `${encodeURIComponent(name)}.bson.gz`;
  const hash = createHash('sha256');
  const counted = { documents: 0, bytes: 0 };
  await pipeline(
    Readable.from(inPieces(documents, counted)),
    createGzip({ level: LIMITS.backupCompression }),
    async function* (compressed: AsyncIterable<Buffer>) {
      for await (const bytes of compressed) {
        hash.update(bytes);
        yield bytes;
      }
    },
    createWriteStream(join(folder, file), { mode: 0o600, flush: true }),
  );
  return { collection: name, file, ...counted, sha256: hash.digest('hex') };
}

/** Pieces that are worth a turn of the compressor. */
async function* inPieces(
  documents: AsyncIterable<Uint8Array>,
  counted: { documents: number; bytes: number },
): AsyncGenerator<Buffer> {
  let piece: Uint8Array[] = [];
  let pieceBytes = 0;
  for await (const document of documents) {
    piece.push(document);
    pieceBytes += document.length;
    counted.documents++;
    counted.bytes += document.length;
    if (pieceBytes < LIMITS.backupPieceBytes) continue;
    yield Buffer.concat(piece);
    [piece, pieceBytes] = [[], 0];
  }
  yield Buffer.concat(piece);
}
