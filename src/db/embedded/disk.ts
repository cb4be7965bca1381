/** Whether there is room for a database: a mongod without any ends, and says little of why. */
import { statfs } from 'node:fs/promises';

const mib = 1024 ** 2;
/** What a new database takes at once, and room to begin with. */
const firstMib = 512;

/** Throws, with advice, where a new database has no room in the folder. */
export async function checkFirstRoom(folder: string): Promise<void> {
  const freeMib = await freeMibOf(folder);
  if (freeMib === null || freeMib >= firstMib) return;
  throw new Error(
    `Too little room for a new database: ${freeMib} MiB are free for ${folder}, and it needs ${firstMib} MiB. ` +
      'Make room, or set DATA_DIR to a folder on a larger disk',
  );
}

async function freeMibOf(folder: string): Promise<number | null> {
  const found = await statfs(folder).catch(() => null);
  return found === null ? null : Math.floor((found.bavail * found.bsize) / mib);
}
