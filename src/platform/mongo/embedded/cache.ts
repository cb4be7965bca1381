/**
 * The user's cache of fetched mongod programs, one folder per build. A folder appears only when it is complete: it is filled under
 * another name, tested, and renamed.
 */
import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Mongod, readVersion, type ServerLog } from './binary.js';
import { type FolderLock, lockFolder } from './lock.js';

/** A build that can be fetched: the name of its folder, its source, and a function that fills the folder. */
export type Build = {
  name: string;
  origin: string;
  /** Writes `mongod` (`mongod.exe`) and its libraries into the folder. */
  fetchTo(folder: string): Promise<void>;
};

const receipt = 'complete.json';
const unfinished = 'unfinished-';
const waitForOtherMs = 250;

/** The build in the cache, if it is complete and runs; null otherwise. */
export async function findCached(cacheFolder: string, name: string, origin: string): Promise<Mongod | null> {
  const folder = join(cacheFolder, name);
  try {
    const sizes = JSON.parse(await readFile(join(folder, receipt), 'utf8')) as Record<string, number>;
    for (const [file, bytes] of Object.entries(sizes)) {
      if ((await stat(join(folder, file))).size !== bytes) return null;
    }
    return await tryFolder(folder, Object.keys(sizes), origin);
  } catch {
    return null;
  }
}

/** Fetches a build into the cache. If another process is fetching it, waits and uses the result. */
export async function fillCache(cacheFolder: string, build: Build, log: ServerLog): Promise<Mongod> {
  await mkdir(cacheFolder, { recursive: true, mode: 0o700 });
  const lock = await waitForLock(cacheFolder, log);
  try {
    const cached = await findCached(cacheFolder, build.name, build.origin);
    if (cached) return cached;
    await removeUnfinished(cacheFolder);
    return await fetchBuild(cacheFolder, build);
  } finally {
    await lock.release();
  }
}

async function fetchBuild(cacheFolder: string, build: Build): Promise<Mongod> {
  const folder = join(cacheFolder, `${unfinished}${build.name}`);
  const target = join(cacheFolder, build.name);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await build.fetchTo(folder);
    const files = await readdir(folder);
    for (const file of files) await chmod(join(folder, file), 0o755);
    await tryFolder(folder, files, build.origin);
    const sizes = await Promise.all(files.map(async (file) => [file, (await stat(join(folder, file))).size]));
    await writeFile(join(folder, receipt), JSON.stringify(Object.fromEntries(sizes)));
    await rm(target, { recursive: true, force: true });
    await rename(folder, target);
    return await tryFolder(target, files, build.origin);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function tryFolder(folder: string, files: string[], origin: string): Promise<Mongod> {
  const program = files.find((file) => /^mongod(\.exe)?$/.test(file));
  if (!program) throw new Error('the build contains no mongod');
  const file = join(folder, program);
  const libraryFolder = files.some((name) => name.includes('.so')) ? folder : null;
  return { file, libraryFolder, version: await readVersion(file, libraryFolder), origin };
}

async function waitForLock(cacheFolder: string, log: ServerLog): Promise<FolderLock> {
  for (let waited = 0; ; waited += 1) {
    const lock = await lockFolder(cacheFolder);
    if ('release' in lock) return lock;
    if (waited === 0) log.info({ processId: lock.heldBy }, 'Another process is fetching MongoDB; waiting for it');
    await sleep(waitForOtherMs);
  }
}

async function removeUnfinished(cacheFolder: string): Promise<void> {
  const left = (await readdir(cacheFolder)).filter((name) => name.startsWith(unfinished));
  for (const name of left) await rm(join(cacheFolder, name), { recursive: true, force: true });
}
