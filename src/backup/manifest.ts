/** The format of backups: a folder with a file of compressed BSON per collection, and a manifest, which is written last. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface BackupFile {
  readonly collection: string;
  readonly file: string;
  readonly documents: number;
  /** Of buckets of packed history: how many packets they have. */
  readonly packets?: number;
  /** The uncompressed size. */
  readonly bytes: number;
  /** The checksum of the compressed file. */
  readonly sha256: string;
}

export interface Manifest {
  readonly format: 1;
  /** The schema version of the data. */
  readonly schema: number;
  /** When the backup began, in ms since the epoch. */
  readonly time: number;
  /** The time of the snapshot, by the database's logical clock. */
  readonly clusterTime: string;
  /** Whether all packets belong to the snapshot; otherwise the last ones were read somewhat later. */
  readonly exact: boolean;
  readonly files: readonly BackupFile[];
}

export const MANIFEST = 'manifest.json';

/** Reads the manifest and verifies all files. Throws an error that names a missing or damaged file. */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, MANIFEST), 'utf8').catch(() => null);
  if (text === null) throw new Error(`${folder} is not a complete backup: it has no ${MANIFEST}`);
  const manifest = JSON.parse(text) as Manifest;
  if (manifest.format !== 1)
    throw new Error(`${folder} has the format ${manifest.format}, which this Vigil does not know`);
  for (const { file, sha256 } of manifest.files) {
    const found = await hashOf(join(folder, file)).catch(() => null);
    if (found === null) throw new Error(`${join(folder, file)} is missing or unreadable`);
    if (found !== sha256) throw new Error(`${join(folder, file)} is damaged: its checksum does not match`);
  }
  return manifest;
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const bytes of createReadStream(path)) hash.update(bytes);
  return hash.digest('hex');
}
