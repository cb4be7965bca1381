/** The secret that signs sessions and tokens, where the operator gave none: made once and kept beside the data. */
import { randomBytes } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../db/folder.js';

/** The secret of this data folder. Of several that start at once, each gets the same. */
export async function keepSecret(dataFolder: string): Promise<string> {
  await makeFolder(dataFolder);
  const file = join(dataFolder, 'secret');
  const kept = await readFile(file, 'utf8').catch(() => '');
  if (kept.trim() !== '') return kept.trim();
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, `${randomBytes(48).toString('base64url')}\n`, { mode: 0o600, flush: true });
  // A link is made whole or not at all, and never over another.
  await link(draft, file).catch((error) => {
    if (error.code !== 'EEXIST') throw error;
  });
  await rm(draft);
  return (await readFile(file, 'utf8')).trim();
}
