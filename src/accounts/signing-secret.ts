/** The secret that signs sessions and tokens when the operator sets none: generated once and stored in the data folder. */
import { randomBytes } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createFolder } from '../platform/mongo/embedded/data-folder.js';

/** Returns the secret of this data folder. Services that start at the same time get the same one. */
export async function getOrCreateSecret(dataFolder: string): Promise<string> {
  await createFolder(dataFolder);
  const file = join(dataFolder, 'secret');
  const stored = await readFile(file, 'utf8').catch(() => '');
  if (stored.trim() !== '') return stored.trim();
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, `${randomBytes(48).toString('base64url')}\n`, { mode: 0o600, flush: true });
  // Creating a link is atomic and never replaces a file.
  await link(draft, file).catch((error) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await rm(draft);
  return (await readFile(file, 'utf8')).trim();
}
