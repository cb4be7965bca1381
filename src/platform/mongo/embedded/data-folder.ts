/** Creates the private folders of the service. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates a private folder and its missing parents, one at a time: with `recursive`, Node.js retries forever where the system
 * reports that a folder cannot exist (as under `/proc`). Throws the error of the system.
 */
export async function createFolder(folder: string): Promise<void> {
  const parent = dirname(folder);
  if (parent !== folder && (await isMissing(parent))) await createFolder(parent);
  await mkdir(folder, { mode: 0o700 }).catch(async (error) => {
    const found = await stat(folder).catch(() => null);
    if (found?.isDirectory() !== true) throw error;
  });
}

const isMissing = (path: string): Promise<boolean> =>
  stat(path).then(
    () => false,
    (error) => error.code === 'ENOENT',
  );
