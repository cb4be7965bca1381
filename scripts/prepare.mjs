/**
 * Prepares a fresh clone: installs the dependencies and compiles the sources, each only if needed. It runs before `npm start`,
 * `npm test` and the tools, so it uses only Node.js, and prints nothing if there is nothing to do.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const oldestMajor = 20;
const oldestMinor = 19;
const lockBeatMs = 1_000;
const lockStaleMs = 10_000;
const lockPollMs = 100;

const root = fileURLToPath(new URL('..', import.meta.url));
const isQuiet = process.argv.includes('--quiet');
const path = (...parts) => join(root, ...parts);

/** An error that is printed without its stack. */
const fail = (message) => Object.assign(new Error(message), { isPlain: true });

function say(message) {
  if (!isQuiet) process.stderr.write(`${message}\n`);
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return;
  throw fail(`Node ${oldestMajor}.${oldestMinor} or newer is needed; this is Node ${process.versions.node}.`);
}

function readText(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

function filesUnder(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = join(folder, entry.name);
    return entry.isDirectory() ? filesUnder(file) : [file];
  });
}

// --- dependencies ---

const installStamp = path('node_modules', '.vigil-stamp');

/** The platform of the installed packages: packages copied from a different kind of machine do not run here. */
function wantedInstall() {
  const lock = createHash('sha256')
    .update(readFileSync(path('package-lock.json')))
    .digest('hex');
  return `${lock} ${process.platform}-${process.arch}`;
}

function isInstalled() {
  if (readText(installStamp) === wantedInstall()) return true;
  if (!hasWhatTheLockNames()) return false;
  writeFileSync(installStamp, wantedInstall());
  return true;
}

/** Whether npm was run by hand. npm writes its own list last, so a matching list means a complete installation. */
function hasWhatTheLockNames() {
  const listed = readText(path('node_modules', '.package-lock.json'));
  if (!listed) return false;
  const installed = JSON.parse(listed).packages;
  const wanted = Object.entries(JSON.parse(readText(path('package-lock.json'))).packages);
  return wanted.every(([folder, { version, optional, peer }]) => {
    if (folder === '' || ((optional || peer) && !installed[folder])) return true;
    return installed[folder]?.version === version && existsSync(path(folder));
  });
}

async function install() {
  say('Installing dependencies (first start only) …');
  rmSync(installStamp, { force: true });
  // Includes development packages regardless of NODE_ENV, since the compiler is one of them.
  const options = ['--include=dev', '--ignore-scripts', '--no-audit', '--no-fund'];
  const npm = process.env.npm_execpath ?? '';
  // Always npm, even if another package manager started this script: only npm reads this lock file.
  if (/^npm(-cli)?\.c?js$/.test(basename(npm))) await run(process.execPath, [npm, 'ci', ...options]);
  else await run('npm', ['ci', ...options], { shell: process.platform === 'win32' });
  writeFileSync(installStamp, wantedInstall());
}

// --- the build ---

const buildStamp = path('dist', '.stamp');
/** Generated from the API documents, so not a source file. */
const clientTypes = path('src', 'client', 'generated', 'api.ts');

const isOfConsole = (file) => relative(root, file).split(sep).slice(0, 2).join('/') === 'src/console';

const wantedBuild = () =>
  hashOf([
    ...filesUnder(path('src')).filter((file) => file !== clientTypes && !isOfConsole(file)),
    ...filesUnder(path('scripts')).filter((file) => file.endsWith('.ts') || file.endsWith('.json')),
    path('tsconfig.json'),
    path('package-lock.json'),
  ]);

function hashOf(sources) {
  sources.sort();
  const hash = createHash('sha256');
  for (const file of sources) {
    const content = readFileSync(file);
    hash.update(`${relative(root, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex');
}

/** A folder in which tests try this script has neither client nor console. */
const hasPart = (name) => existsSync(path('src', name));

function isBuilt() {
  return (!hasPart('client') || existsSync(clientTypes)) && readText(buildStamp) === wantedBuild();
}

async function build() {
  say('Compiling …');
  const wanted = wantedBuild();
  for (const entry of readdirIfThere(path('dist'))) {
    if (entry !== 'console') rmSync(path('dist', entry), { recursive: true, force: true });
  }
  if (hasPart('client')) await printClientTypes();
  await Promise.all([compile('tsconfig.build.json'), hasPart('client') && buildClient()]);
  const assets = filesUnder(path('src')).filter((file) => !/\.(ts|md)$/.test(file) && !isOfConsole(file));
  for (const file of assets) cpSync(file, path('dist', relative(root, file)));
  writeFileSync(buildStamp, wanted);
}

function compile(project) {
  return run(process.execPath, [path('node_modules', 'typescript', 'bin', 'tsc'), '-p', path('scripts', project)]);
}

async function printClientTypes() {
  const { build } = await import('esbuild');
  const program = path('dist', 'print-types.mjs');
  const source = path('scripts', 'types', 'main.ts');
  await build({
    entryPoints: [source],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  });
  await run(process.execPath, [program, clientTypes]);
  rmSync(program);
}

/** Builds the client as a separate package that works without the service: one module and its types. */
async function buildClient() {
  const { build } = await import('esbuild');
  const source = path('src', 'client', 'client.ts');
  const folder = path('dist', 'client');
  await Promise.all([
    build({
      entryPoints: [source],
      outfile: join(folder, 'client.js'),
      bundle: true,
      platform: 'neutral',
      target: 'es2022',
      sourcemap: true,
    }),
    compile('tsconfig.client.json'),
  ]);
  const { version, license } = JSON.parse(readText(path('package.json')));
  const manifest = {
    name: 'vigil-client',
    version,
    license,
    type: 'module',
    exports: { types: './types/client.d.ts', default: './client.js' },
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

// --- the console ---

const consoleStamp = path('dist', 'console', '.stamp');

/** The sources of the bundle, including the modules that the console may import. */
const wantedConsole = () =>
  hashOf([
    ...['console', 'client', 'core']
      .flatMap((folder) => filesIfThere(path('src', folder)))
      .filter((file) => file !== clientTypes),
    path('scripts', 'build-console.mjs'),
    path('tsconfig.json'),
    path('tsconfig.console.json'),
    path('package-lock.json'),
  ]);

const readdirIfThere = (folder) => (existsSync(folder) ? readdirSync(folder) : []);
const filesIfThere = (folder) => (existsSync(folder) ? filesUnder(folder) : []);

function isConsoleBuilt() {
  return !hasPart('console') || readText(consoleStamp) === wantedConsole();
}

async function buildConsole() {
  say('Bundling the console …');
  const wanted = wantedConsole();
  await run(process.execPath, [path('scripts', 'build-console.mjs')]);
  writeFileSync(consoleStamp, wanted);
}

// --- running things, one at a time ---

/** @returns {Promise<void>} */
function run(program, args, options = {}) {
  return new Promise((resolve, reject) => {
    let said = '';
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], ...options });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        said += text;
      });
    }
    child.on('error', (error) => reject(fail(`${program} cannot be started: ${error.message}`)));
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(fail(`${said.trim()}\n\nFailed: ${basename(program)} ${args.join(' ')}`));
    });
  });
}

/** Runs the work under a lock among all processes that prepare this folder. */
async function alone(work) {
  const lock = join(tmpdir(), `vigil-prepare-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`);
  for (let waited = 0; !tryToTake(lock); waited += 1) {
    if (waited === 0) say('Another start prepares this folder; waiting for it …');
    await sleep(lockPollMs);
  }
  const beat = setInterval(() => utimesSync(lock, new Date(), new Date()), lockBeatMs);
  try {
    return await work();
  } finally {
    clearInterval(beat);
    rmSync(lock, { recursive: true, force: true });
  }
}

function tryToTake(lock) {
  try {
    mkdirSync(lock);
    writeFileSync(join(lock, 'process'), String(process.pid));
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  if (isStale(lock)) rmSync(lock, { recursive: true, force: true });
  return false;
}

/** A killed holder has no process, or, if its process id was reused, no recent heartbeat. */
function isStale(lock) {
  const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  if (age > lockStaleMs) return true;
  try {
    process.kill(Number(readText(join(lock, 'process'))) || process.pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

async function prepare() {
  checkNode();
  if (isInstalled() && isBuilt() && isConsoleBuilt()) return;
  await alone(async () => {
    if (!isInstalled()) await install();
    // Two single-threaded programs.
    await Promise.all([isBuilt() || build(), isConsoleBuilt() || buildConsole()]);
  });
}

prepare().catch((error) => {
  process.stderr.write(`${error.isPlain ? error.message : error.stack}\n`);
  process.exitCode = 1;
});
