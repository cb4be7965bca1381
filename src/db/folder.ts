/** The folders in which the service keeps what is its own. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a folder for nobody but us, and those above it that are missing. One at a time: asked for all of them at once,
 * Node.js tries for ever where the system says that there cannot be any (as under `/proc`). Throws what the system says.
 */
export async function makeFolder(folder: string): Promise<void> {
  const parent = dirname(folder);
  if (parent !== folder && (await isMissing(parent))) await makeFolder(parent);
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
