/**
 * The programs of a container engine, and what base images are made of, out of Debian's packages: unpacked into the user's
 * cache, installed nowhere. Go programs come from the newer Debian and run on older systems; those in C come from the older
 * one, for the same reason.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { defaultCacheFolder } from '../../../src/config.js';

const run = promisify(execFile);
const FOLDER = 'container-engine-2';
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
/** For all of them together. */
const FETCH_TIMEOUT_MS = 180_000;

const ENGINE = {
  trixie: ['docker.io', 'docker-cli', 'docker-compose', 'containerd'],
  bookworm: [
    'runc',
    'tini',
    'slirp4netns',
    'libslirp0',
    'iptables',
    'libip4tc2',
    'libip6tc2',
    'libxtables12',
    'libmnl0',
    'libnftnl11',
    'libnetfilter-conntrack3',
    'libnfnetlink0',
  ],
};
/** What nginx, a shell with its tools, Node.js and mongod need. */
const ROOT = [
  'base-files',
  'bash',
  'coreutils',
  'dash',
  'debianutils',
  'findutils',
  'grep',
  'mawk',
  'sed',
  'libc6',
  'libc-bin',
  'libgcc-s1',
  'libstdc++6',
  'libacl1',
  'libattr1',
  'libcap2',
  'libcrypt1',
  'libgmp10',
  'libpcre2-8-0',
  'libselinux1',
  'libssl3t64',
  'libtinfo6',
  'libzstd1',
  'zlib1g',
  'nginx',
  'nginx-common',
  'libnginx-mod-stream',
  'libcurl4t64',
  'libbrotli1',
  'libcom-err2',
  'libffi8',
  'libgnutls30t64',
  'libgssapi-krb5-2',
  'libhogweed6t64',
  'libidn2-0',
  'libk5crypto3',
  'libkeyutils1',
  'libkrb5-3',
  'libkrb5support0',
  'libldap2',
  'libnettle8t64',
  'libnghttp2-14',
  'libnghttp3-9',
  'libp11-kit0',
  'libpsl5t64',
  'librtmp1',
  'libsasl2-2',
  'libssh2-1t64',
  'libtasn1-6',
  'libunistring5',
  'libdb5.3t64',
];
const PROMETHEUS = ['prometheus'];

/** Where the unpacked packages are. */
export interface Packages {
  /** Folders of programs, for PATH. */
  readonly programs: readonly string[];
  /** For LD_LIBRARY_PATH of the engine's own programs. */
  readonly libraries: string;
  /** Compose, as a plugin of the command line's. */
  readonly composePlugin: string;
  /** A root file system for base images. */
  readonly root: string;
  readonly prometheus: string;
}

/** The packages, out of the cache or fetched; throws why there are none to be had. */
export async function findPackages(): Promise<Packages> {
  const cacheFolder = defaultCacheFolder(process.env, homedir(), process.platform);
  const folder = join(cacheFolder, FOLDER);
  if (!existsSync(folder)) await fetchInto(cacheFolder, folder);
  const libraries = join(folder, 'engine/usr/lib/x86_64-linux-gnu');
  return {
    programs: ['bin', 'engine/usr/sbin', 'engine/usr/bin'].map((name) => join(folder, name)),
    libraries,
    composePlugin: join(folder, 'engine/usr/libexec/docker/cli-plugins/docker-compose'),
    root: join(folder, 'root'),
    prometheus: join(folder, 'prometheus/usr/bin/prometheus'),
  };
}

async function fetchInto(cacheFolder: string, target: string): Promise<void> {
  if (process.arch !== 'x64') throw new Error(`the packages are for x64, and this machine is ${process.arch}`);
  if (!existsSync(KEYRING)) throw new Error('this machine does not know the keys of Debian');
  await mkdir(cacheFolder, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(join(cacheFolder, `unfinished-${FOLDER}-`));
  try {
    const apt = await prepareApt(join(folder, 'apt'));
    await apt('update');
    const inSuite = (suite: string, names: readonly string[]) => names.map((name) => `${name}/${suite}`);
    const engine = Object.entries(ENGINE).flatMap(([suite, names]) => inSuite(suite, names));
    await unpack(apt, engine, join(folder, 'engine'));
    await unpack(apt, inSuite('trixie', ROOT), join(folder, 'root'));
    await unpack(apt, inSuite('trixie', PROMETHEUS), join(folder, 'prometheus'));
    await linkIptables(join(folder, 'bin'));
    await rm(join(folder, 'apt'), { recursive: true });
    // Another run may have been faster.
    await rename(folder, target).catch((error) => {
      if (!existsSync(target)) throw error;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

type Apt = (...args: string[]) => Promise<unknown>;

/** apt-get with settings, lists and a status of its own: the machine's stay as they are. */
async function prepareApt(folder: string): Promise<Apt> {
  for (const name of ['lists/partial', 'cache/archives/partial', 'packages'])
    await mkdir(join(folder, name), { recursive: true });
  const source = (suite: string) =>
    `deb [arch=amd64 signed-by=${KEYRING}] http://deb.debian.org/debian ${suite} main\n`;
  await writeFile(join(folder, 'sources.list'), ['bookworm', 'trixie'].map(source).join(''));
  await writeFile(join(folder, 'status'), '');
  const options = {
    'Dir::Etc::sourcelist': join(folder, 'sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::State': folder,
    'Dir::State::Lists': join(folder, 'lists'),
    'Dir::State::status': join(folder, 'status'),
    'Dir::Cache': join(folder, 'cache'),
    'APT::Architecture': 'amd64',
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
    'Acquire::Retries': '2',
    'Acquire::http::Timeout': '20',
  };
  const given = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  const deadline = performance.now() + FETCH_TIMEOUT_MS;
  return (...args) => {
    const timeout = Math.max(1, Math.round(deadline - performance.now()));
    const cwd = join(folder, 'packages');
    return run('apt-get', [...given, '-qq', ...args], { cwd, timeout, killSignal: 'SIGKILL' });
  };
}

async function unpack(apt: Apt, names: readonly string[], target: string): Promise<void> {
  const packages = join(target, '..', 'apt', 'packages');
  await apt('download', ...names);
  await mkdir(target);
  for (const file of await readdir(packages)) {
    await run('dpkg', ['-x', join(packages, file), target]);
    await rm(join(packages, file));
  }
}

/** What Debian links while it installs. */
async function linkIptables(folder: string): Promise<void> {
  await mkdir(folder);
  for (const family of ['iptables', 'ip6tables'])
    for (const name of [family, `${family}-save`, `${family}-restore`])
      await symlink('../engine/usr/sbin/xtables-nft-multi', join(folder, name));
}
