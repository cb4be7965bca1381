/** What a backup is: a folder with a file of compressed BSON for each collection, and a manifest, written last, of them all. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface BackupFile {
  readonly collection: string;
  readonly file: string;
  readonly documents: number;
  /** Before they were compressed. */
  readonly bytes: number;
  /** Of the file as it is. */
  readonly sha256: string;
}

export interface Manifest {
  readonly format: 1;
  /** How many migrations had been applied to the data. */
  readonly schema: number;
  /** When it was begun, ms since the epoch. */
  readonly time: number;
  /** The moment of the database's own clock at which everything was read. */
  readonly clusterTime: string;
  /** Whether the database could give the packets of that moment to the last; if not, the rest are those of some moments later. */
  readonly exact: boolean;
  readonly files: readonly BackupFile[];
}

export const MANIFEST = 'manifest.json';

/** The manifest of a backup whose every file is as it was written. Throws an error that says what is not. */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, MANIFEST), 'utf8').catch(() => null);
  if (text === null) throw new Error(`${folder} is no backup, or no whole one: it has no ${MANIFEST}`);
  const manifest = JSON.parse(text) as Manifest;
  if (manifest.format !== 1)
    throw new Error(`${folder} has the format ${manifest.format}, which this Vigil does not know`);
  for (const { file, sha256 } of manifest.files) {
    const found = await hashOf(join(folder, file)).catch(() => null);
    if (found === null) throw new Error(`${join(folder, file)} is missing, or cannot be read`);
    if (found !== sha256)
      throw new Error(`${join(folder, file)} is not as it was written: its checksum is another one`);
  }
  return manifest;
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const bytes of createReadStream(path)) hash.update(bytes);
  return hash.digest('hex');
}
