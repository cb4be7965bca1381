/** Stand-ins for the images that docker-compose.yml names: the same programs, users and folders, out of what is in reach here. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, cp, mkdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { defaultCacheFolder } from '../../../src/config.js';
import { findMongod } from '../../../src/platform/mongo/embedded/mongod.js';
import type { Engine } from './engine.js';
import type { Packages } from './packages.js';

const run = promisify(execFile);
const IMPORT_TIMEOUT_MS = 300_000;
const SCRIPTS = 'test/slow/compose/stand-ins';
const NPM_CACHE = 'var/cache/npm';
const LARGEST_CACHE_KB = 1_000_000;
const quiet = { info() {}, warn() {} };

/** The names of the stand-ins. */
export const IMAGES = {
  node: 'stand-in-node',
  mongo: 'stand-in-mongo',
  nginx: 'stand-in-nginx',
  prometheus: 'stand-in-prometheus',
  grafana: 'stand-in-grafana',
  traccar: 'stand-in-traccar',
};

const USERS = { node: 1000, mongodb: 999, nginx: 101, grafana: 472, nobody: 65534 };

/** What comes upon the root file system of an image, below a folder. */
type Layer = (folder: string) => Promise<void>;

interface Image {
  readonly name: string;
  readonly layers: readonly Layer[];
  /** As in a Dockerfile. */
  readonly settings: readonly string[];
}

/** Makes every stand-in; throws why one cannot be made, or does not run. */
export async function importImages(engine: Engine, packages: Packages): Promise<void> {
  const images = await describeImages(engine, packages);
  await Promise.all(images.map((image) => importImage(engine, packages, image)));
  // A machine whose programs are newer than the root file system.
  for (const [name, program] of [
    [IMAGES.node, 'node'],
    [IMAGES.mongo, 'mongod'],
  ] as const)
    await engine.docker('run', '--rm', '--network', 'none', '--entrypoint', program, name, '--version');
}

async function importImage(engine: Engine, { root }: Packages, { name, layers, settings }: Image): Promise<void> {
  const folder = join(engine.folder, name);
  await run('cp', ['-a', root, folder]);
  await addUsers(folder);
  for (const layer of layers) await layer(folder);
  const changes = settings.map((setting) => `--change '${setting}'`).join(' ');
  const script = `tar -c -C '${folder}' . | docker import ${changes} - ${name}`;
  await run('sh', ['-c', script], { env: engine.env, timeout: IMPORT_TIMEOUT_MS });
  await rm(folder, { recursive: true });
}

async function describeImages(engine: Engine, packages: Packages): Promise<Image[]> {
  const bundle = await bundleScripts(engine.folder);
  const node = addPrograms(packages, [process.execPath], 'usr/local/bin');
  const scripts = (folder: string) => cp(bundle, join(folder, 'stand-ins'), { recursive: true });
  const authority = process.env.NODE_EXTRA_CA_CERTS;
  return [
    {
      name: IMAGES.node,
      layers: [node, addNpm, addFetchedPackages, ...(authority ? [addFile(authority, 'etc/authority.pem')] : [])],
      settings: [
        `ENV npm_config_cache=/${NPM_CACHE} npm_config_prefer_offline=true npm_config_update_notifier=false`,
        ...(authority ? ['ENV npm_config_cafile=/etc/authority.pem'] : []),
      ],
    },
    {
      name: IMAGES.mongo,
      layers: [node, await addMongod(), scripts, addMongoFolders],
      settings: ['ENTRYPOINT ["/usr/local/bin/mongo-entrypoint"]', 'VOLUME /data/db', 'VOLUME /data/configdb'],
    },
    { name: IMAGES.nginx, layers: [addFolders({ 'var/log/nginx': USERS.nginx })], settings: [] },
    {
      name: IMAGES.prometheus,
      layers: [addFile(packages.prometheus, 'bin/prometheus'), addFolders({ prometheus: USERS.nobody })],
      settings: ['ENTRYPOINT ["/bin/prometheus"]', 'VOLUME /prometheus'],
    },
    {
      name: IMAGES.grafana,
      layers: [node, scripts, addFolders({ 'var/lib/grafana': USERS.grafana })],
      settings: [],
    },
    { name: IMAGES.traccar, layers: [node, scripts], settings: ['ENTRYPOINT ["node", "/stand-ins/traccar.mjs"]'] },
  ];
}

async function addUsers(folder: string): Promise<void> {
  const entries = Object.entries({ root: 0, ...USERS });
  const passwd = entries.map(([name, id]) => `${name}:x:${id}:${id}::/home/${name}:/bin/sh\n`);
  await writeFile(join(folder, 'etc/passwd'), passwd.join(''));
  await writeFile(join(folder, 'etc/group'), entries.map(([name, id]) => `${name}:x:${id}:\n`).join(''));
}

const addFile =
  (source: string, target: string): Layer =>
  async (folder) => {
    await mkdir(dirname(join(folder, target)), { recursive: true });
    await cp(source, join(folder, target), { dereference: true });
  };

const addFolders =
  (owners: Record<string, number>): Layer =>
  async (folder) => {
    for (const [name, owner] of Object.entries(owners)) {
      await mkdir(join(folder, name), { recursive: true });
      await chown(join(folder, name), owner, owner);
    }
  };

/** Programs of this machine, with those of their libraries that the root file system has not. */
function addPrograms({ root }: Packages, programs: readonly string[], target: string): Layer {
  return async (folder) => {
    for (const program of programs) {
      await addFile(await realpath(program), join(target, program.split('/').at(-1) as string))(folder);
      const { stdout } = await run('ldd', [program]);
      for (const [, library] of stdout.matchAll(/=> (\/\S+\/[^/\s]+\.so\S*)/g)) {
        const name = (library as string).split('/').at(-1) as string;
        const isThere = await realpath(join(root, 'usr/lib/x86_64-linux-gnu', name)).catch(() => null);
        if (isThere === null) await addFile(library as string, join('usr/lib/x86_64-linux-gnu', name))(folder);
      }
    }
  };
}

async function addNpm(folder: string): Promise<void> {
  const { stdout } = await run('sh', ['-c', 'command -v npm']);
  const npm = join(await realpath(stdout.trim()), '../..');
  const modules = join(folder, 'usr/local/lib/node_modules');
  await cp(npm, join(modules, 'npm'), { recursive: true });
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(folder, 'usr/local/bin/npm'));
  await addFolders({ 'home/node': USERS.node })(folder);
}

/** What npm has fetched here before: what is there it need not ask for. */
async function addFetchedPackages(folder: string): Promise<void> {
  const { stdout } = await run('npm', ['config', 'get', 'cache']);
  const cache = join(stdout.trim(), '_cacache');
  if (!existsSync(cache)) return;
  const kilobytes = Number(/^\d+/.exec((await run('du', ['-sk', cache])).stdout)?.[0]);
  if (kilobytes < LARGEST_CACHE_KB) await cp(cache, join(folder, NPM_CACHE, '_cacache'), { recursive: true });
}

async function addMongod(): Promise<Layer> {
  const cacheFolder = defaultCacheFolder(process.env, homedir(), process.platform);
  const searchPath = process.env.PATH ?? '';
  const mongod = await findMongod({ binary: process.env.MONGOD_BINARY || null, searchPath, cacheFolder, log: quiet });
  return async (folder) => {
    await addFile(mongod.file, 'usr/lib/mongodb/mongod')(folder);
    if (mongod.libraryFolder !== null)
      for (const name of ['libssl.so.1.1', 'libcrypto.so.1.1'])
        await addFile(join(mongod.libraryFolder, name), `usr/lib/mongodb/${name}`)(folder);
    await addScript(folder, 'mongod', 'LD_LIBRARY_PATH=/usr/lib/mongodb exec /usr/lib/mongodb/mongod "$@"');
    await addScript(folder, 'mongosh', 'exec node /stand-ins/mongosh.mjs "$@"');
    const start = 'case "$MONGO_INITDB_ROOT_USERNAME" in "") exec "$@" ;; *) exec "$@" --auth ;; esac';
    await addScript(folder, 'mongo-entrypoint', `node /stand-ins/mongo-init.mjs >&2 || exit 1\n${start}`);
  };
}

const addMongoFolders = addFolders({ 'data/db': USERS.mongodb, 'data/configdb': USERS.mongodb });

async function addScript(folder: string, name: string, text: string): Promise<void> {
  const file = join(folder, 'usr/local/bin', name);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `#!/bin/sh\n${text}\n`);
  await chmod(file, 0o755);
}

/** The stand-ins' scripts with the packages they use, each one file. */
async function bundleScripts(folder: string): Promise<string> {
  const outdir = join(folder, 'stand-ins');
  const entryPoints = ['mongosh', 'mongo-init', 'grafana', 'traccar'].map((name) => resolve(SCRIPTS, `${name}.mjs`));
  // The driver looks for packages that are not there, and goes on without.
  const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" };
  const options = { bundle: true, platform: 'node', format: 'esm', outExtension: { '.js': '.mjs' } } as const;
  await build({ ...options, entryPoints, outdir, banner, logLevel: 'silent' });
  return outdir;
}

/** How many files a process may open here: containers cannot have more. */
export async function readFileLimit(): Promise<number> {
  const [, hard] = /Max open files\s+\d+\s+(\d+)/.exec(await readFile('/proc/self/limits', 'utf8')) ?? [];
  return Number(hard ?? 1_024);
}
