/** Checks the free disk space: a mongod without any exits with an unclear message. */
import { statfs } from 'node:fs/promises';

const mib = 1024 ** 2;
/** The initial size of a new database, with some space for data. */
const requiredMib = 512;
/** A mongod that exits with less than this is taken to have exited for want of space. */
export const neededToRunMib = 128;

/** Throws an error with advice when the folder has too little space for a new database. */
export async function checkFreeSpace(folder: string): Promise<void> {
  const freeMib = await freeMibOf(folder);
  if (freeMib === null || freeMib >= requiredMib) return;
  throw new Error(
    `Too little disk space for a new database: ${folder} has ${freeMib} MiB free, and the database needs ${requiredMib} MiB. ` +
      'Free some space, or set DATA_DIR to a folder on a larger disk',
  );
}

/** Advice for an operator whose disk has too little space for a database to run; null when it has enough. */
export async function describeFullDisk(folder: string): Promise<string | null> {
  const freeMib = await freeMibOf(folder);
  if (freeMib === null || freeMib >= neededToRunMib) return null;
  return (
    `The disk is full: ${folder} has ${freeMib} MiB free, and the database needs ${neededToRunMib} MiB to run. ` +
    'Free some space; nothing that was acknowledged is lost'
  );
}

async function freeMibOf(folder: string): Promise<number | null> {
  const found = await statfs(folder).catch(() => null);
  return found === null ? null : Math.floor((found.bavail * found.bsize) / mib);
}
