/** Writes a consistent snapshot of all stored data into a folder while the service runs. */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import {
  BSON,
  type ClientSession,
  type Collection,
  type Db,
  type Document,
  type Filter,
  type MongoClient,
} from 'mongodb';
import { LIMITS } from '../core/limits.js';
import { BUCKETS } from '../packets/store/buckets.js';
import { PACKETS } from '../packets/store/query.js';
import { readNumber } from '../platform/mongo/bson/numbers.js';
import { RESTORING } from '../platform/mongo/schema/migrations.js';
import { type BackupFile, MANIFEST, type Manifest } from './manifest.js';

/** The database no longer has the history of the snapshot: by default it keeps five minutes. */
const SNAPSHOT_TOO_OLD = 239;
/** The database has no committed snapshot yet. */
const SNAPSHOT_UNAVAILABLE = 246;
const SNAPSHOT_PAUSE_MS = 50;
/** Of those that do not count yet, the packets are in rows. */
const COUNTING: Filter<Document> = { isPending: false };
/** Leases are useless after a restore. */
const LASTING: Filter<Document> = { _id: { $not: /^lease: / as never } };

/** Writes the backup. The folder must be empty or missing; it appears only when the backup is complete. */
export async function writeBackup(client: MongoClient, folder: string, nowMs: number): Promise<Manifest> {
  const present = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  if (present.length > 0) throw new Error(`${folder} is not empty: a backup needs its own folder`);
  const draft = `${folder}.partial`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  await mkdir(draft, { mode: 0o700 });
  const session = client.startSession({ snapshot: true });
  try {
    const manifest = await writeAll(client, session, draft, nowMs);
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

async function writeAll(client: MongoClient, session: ClientSession, folder: string, nowMs: number): Promise<Manifest> {
  const db = client.db();
  const marks = await readMarks(db, session);
  if (marks.length === 0) throw new Error('The database is empty: no Vigil has used it yet');
  if (marks.some(({ _id }) => _id === RESTORING)) throw new Error('A restore into this database is unfinished');
  const found = await db.listCollections({ type: 'collection' }, { nameOnly: true }).toArray();
  const isOther = (name: string): boolean => !name.startsWith('system.') && name !== PACKETS && name !== BUCKETS;
  const names = found.map(({ name }) => name).filter(isOther);
  const files: BackupFile[] = [];
  for (const name of names.sort()) {
    const filter = name === 'installation' ? LASTING : {};
    const read = () => db.collection(name).find(filter, { session, raw: true, sort: { _id: 1 } });
    files.push(await writeCollection(folder, name, read() as AsyncIterable<unknown> as AsyncIterable<Uint8Array>));
  }
  // Packets come last: they are many and never change, so only they may be read from a later moment.
  const isThere = (wanted: string): boolean => found.some(({ name }) => name === wanted);
  let exact = true;
  for (const [name, filter] of [[BUCKETS, COUNTING] as const, [PACKETS, {}] as const].filter(([name]) =>
    isThere(name),
  )) {
    const { documents, isExact } = documentsOf(db.collection(name), session, filter);
    files.push(await writeCollection(folder, name, documents));
    exact = exact && isExact();
  }
  if (!exact && isThere(BUCKETS)) files.push(await writeLaterBuckets(client, folder));
  return {
    format: 1,
    schema: marks.find(({ _id }) => _id === 'schema')?.version ?? 0,
    time: nowMs,
    clusterTime: String((session as unknown as { snapshotTime: unknown }).snapshotTime),
    exact,
    files,
  };
}

/** How many packets a backup has, in rows and in buckets. Of buckets that were written twice, the later ones have all that the others have. */
export function countPacketsIn({ files }: Manifest): number {
  const rows = files.find(({ collection }) => collection === PACKETS)?.documents ?? 0;
  const buckets = files.findLast(({ collection }) => collection === BUCKETS)?.packets ?? 0;
  return rows + buckets;
}

type Mark = { _id: string; version?: number };

/** The first read of the session, which fixes the snapshot. A database that has just started needs a moment for it. */
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

/** The documents of the snapshot; once the database no longer has it, the remaining ones are current ones. */
function documentsOf(
  collection: Collection<Document>,
  session: ClientSession,
  filter: Filter<Document>,
): { documents: AsyncIterable<Uint8Array>; isExact: () => boolean } {
  let isExact = true;
  const read = (rest: Filter<Document>, options: object) =>
    collection.find({ ...filter, ...rest }, { ...options, raw: true, sort: { _id: 1 } }) as AsyncIterable<unknown>;
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
      const rest = last === null ? {} : { _id: { $gt: BSON.deserialize(last)._id } };
      yield* read(rest, { readConcern: { level: 'majority' } }) as AsyncIterable<Uint8Array>;
    }
  }
  return { documents: documents(), isExact: () => isExact };
}

/**
 * The buckets once more, after the rows: a row that was packed before it was read is only in these. Most of them are those that were
 * written before; a restore takes each packet once.
 */
async function writeLaterBuckets(client: MongoClient, folder: string): Promise<BackupFile> {
  const session = client.startSession({ snapshot: true });
  try {
    const { documents } = documentsOf(client.db().collection(BUCKETS), session, COUNTING);
    return await writeCollection(folder, BUCKETS, documents, `${BUCKETS}.later.bson.gz`);
  } finally {
    await session.endSession();
  }
}

/** Writes concatenated BSON documents with gzip, the format of MongoDB's own tools. */
async function writeCollection(
  folder: string,
  name: string,
  documents: AsyncIterable<Uint8Array>,
  file = `${encodeURIComponent(name)}.bson.gz`,
): Promise<BackupFile> {
  const hash = createHash('sha256');
  const counted = { documents: 0, bytes: 0, ...(name === BUCKETS && { packets: 0 }) };
  await pipeline(
    Readable.from(chunkBySize(documents, counted)),
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

/** Joins documents to chunks that are large enough for efficient compression. */
async function* chunkBySize(
  documents: AsyncIterable<Uint8Array>,
  counted: { documents: number; bytes: number; packets?: number },
): AsyncGenerator<Buffer> {
  let chunk: Uint8Array[] = [];
  let chunkBytes = 0;
  for await (const document of documents) {
    chunk.push(document);
    chunkBytes += document.length;
    counted.documents++;
    if (counted.packets !== undefined) counted.packets += readNumber(document, 0, 'n');
    counted.bytes += document.length;
    if (chunkBytes < LIMITS.backupPieceBytes) continue;
    yield Buffer.concat(chunk);
    [chunk, chunkBytes] = [[], 0];
  }
  yield Buffer.concat(chunk);
}
